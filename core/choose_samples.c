// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What one candidate was measured to cost: a window of samples, its median. */
#include "choose_private.h"

/* ns per MiB, below UNKNOWN. */
uint32_t bmm_samples_cost(uint64_t bytes, uint64_t ns)
{
	uint64_t cost;

	if (ns >= 1ULL << 43)
		ns = 1ULL << 43;
	/* Most are powers of two: older CPUs take up to 90 cycles to divide. */
	if (bytes & (bytes - 1))
		cost = (ns << 20) / bytes;
	else
		cost = (ns << 20) >> __builtin_ctzll(bytes);
	return cost < UNKNOWN ? (uint32_t)cost : UNKNOWN - 1;
}

/* The lower one of two: what disturbs a sample makes it longer. */
static uint32_t median(const struct bmm_candidate *candidate, unsigned int n)
{
	uint32_t sorted[BMM_CHOOSE_WINDOW], sample;
	unsigned int i, j;

	if (n > BMM_CHOOSE_WINDOW)
		n = BMM_CHOOSE_WINDOW;
	for (i = 0; i < n; i++) {
		sample = get(&candidate->sample[i]);
		for (j = i; j && sorted[j - 1] > sample; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = sample;
	}
	return sorted[(n - 1) / 2];
}

/* Where the @n-th sample is or will be; @n below 2 * BMM_CHOOSE_WINDOW. */
static unsigned int place(unsigned int n)
{
	return n < BMM_CHOOSE_WINDOW ? n : n - BMM_CHOOSE_WINDOW;
}

/* The newest sample, or one that is @age samples older; UNKNOWN before any. */
uint32_t bmm_samples_newest(const struct bmm_candidate *candidate,
			    unsigned int age)
{
	unsigned int n = get(&candidate->samples);

	return n > age ? get(&candidate->sample[place(n - 1 - age)]) : UNKNOWN;
}

/*
 * In a full window a sample that takes the place of another one on the same
 * side of the median leaves it as it is, and nothing has to be sorted. Once
 * around the window it is nevertheless: another CPU may have stored a median
 * of its own late.
 */
static bool same_median(uint32_t middle, uint32_t out, uint32_t in)
{
	return in == out || (in < middle && out < middle) ||
	       (in > middle && out > middle);
}

void bmm_samples_add(struct bmm_candidate *candidate, uint32_t sample)
{
	unsigned int n = get(&candidate->samples);
	uint32_t *oldest = &candidate->sample[place(n)], out = get(oldest);

	set(oldest, sample);
	if (++n == 2 * BMM_CHOOSE_WINDOW)
		n = BMM_CHOOSE_WINDOW;
	set(&candidate->samples, (uint8_t)n);
	if (n <= BMM_CHOOSE_WINDOW ||
	    !same_median(get(&candidate->cost), out, sample))
		set(&candidate->cost, median(candidate, n));
}

/*
 * Two samples in a row that are far from the median: times have changed, and
 * what was measured before must not outvote them.
 */
bool bmm_samples_cut(struct bmm_candidate *candidate, uint32_t before)
{
	uint32_t newest = bmm_samples_newest(candidate, 0);
	uint32_t second = bmm_samples_newest(candidate, 1);
	uint64_t a = newest, b = second, old = before;

	if (get(&candidate->samples) < 3)
		return false;
	if ((2 * a <= 3 * old || 2 * b <= 3 * old) &&
	    (3 * a >= 2 * old || 3 * b >= 2 * old))
		return false;
	set(&candidate->sample[0], second);
	set(&candidate->sample[1], newest);
	set(&candidate->samples, 2);
	set(&candidate->cost, median(candidate, 2));
	return true;
}

void bmm_samples_forget(struct bmm_candidate *candidate)
{
	set(&candidate->samples, 0);
	set(&candidate->cost, 0);
}
