// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * As raid6 and xor_blocks in Linux do it: each candidate runs a few times, and
 * the least time of each counts, since a disturbance only makes a sample
 * longer. The first candidate is selected that none beats by more than 3 %: so
 * equal ones give the same result in every process, their order is a
 * preference, and with a clock that stands still the first is selected.
 *
 * Nobody knows whether what a call touches is in a cache, or where its source
 * lies. The fastest on cold memory may take twice as long as others on hot one,
 * or thirty times as long if the source is close (Zen 4). So each candidate is
 * compared with the best one in each situation, and these ratios are added,
 * each as often as its situation is expected.
 */
#include "calibrate.h"
#include "drain.h"
#include "evict.h"
#include "lines.h"

#define ROUNDS 7U

/* Short calls are repeated: the clock's resolution is some tens of ns. */
#define SAMPLE ((size_t)64 << 10)

/*
 * Where the source lies in its half of the buffer. Not where its lower 12 bits
 * are the destination's: there loads wait for stores that they have nothing to
 * do with. But copies are also tried CLOSE behind the destination in these
 * bits, as with two buffers that begin a page, one of them with a header:
 * vector loops fall from 94 to 8 GB/s, and REP MOVSB, where the source is
 * skewed, from 93 to 3.6 (Zen 4).
 */
#define APART 2048U
#define CLOSE (4096U - 64U)
#define SKEW  24U

/* Whether a backend is measured for an operation. */
static bool competes(const struct bmm_backend *backend, enum bmm_op op,
		     bool skewed)
{
	/* does not bypass the cache */
	if (backend == &bmm_generic && bmm_op_streams(op))
		return false;
	return bmm_backend_can(backend, op) && !(skewed && backend->level);
}

static unsigned int list_all(enum bmm_op op, bool skewed,
			     const struct bmm_backend **list)
{
	const struct bmm_backend *backend;
	unsigned int n = 0;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		if (!competes(backend, op, skewed))
			continue;
		bmm_assert(n < BMM_CANDIDATES);
		if (n < BMM_CANDIDATES)
			list[n++] = backend;
	}
	return n;
}

/**
 * bmm_candidates() - the backends to select from
 * @calls: for these calls
 * @list:  result: up to BMM_CANDIDATES, the one to prefer first
 *
 * Return: how many; at least 1.
 */
unsigned int bmm_candidates(const struct bmm_calls *calls,
			    const struct bmm_backend **list)
{
	unsigned int n = list_all(calls->op, calls->skewed, list);

	if (!n && calls->skewed)
		n = list_all(calls->op, false, list);
	if (!n)
		list[n++] = &bmm_generic;
	return n;
}

/*
 * Stores complete long after their instructions: pending ones must neither be
 * charged to another sample nor go untimed. Without this, REP STOSB of 4 KiB
 * looked twice as fast as ordinary stores that take half as long again (Zen 5).
 */
static uint64_t drained_clock(void)
{
	bmm_finish_stores();
	return bmm_host_clock();
}

/* What the candidates are compared in. */
struct situation {
	struct bmm_job job;
	bool cold;
	const struct bmm_backend *const *list;
};

/* Returns ns per MiB, at least 1. */
static uint64_t backend_cost(void *where, unsigned int k)
{
	const struct situation *s = where;
	struct bmm_job job = s->job;
	size_t calls = job.len < SAMPLE ? SAMPLE / job.len : 1, i;
	uint64_t start;

	if (s->cold) {
		bmm_evict(job.dst, calls * job.len);
		if (job.src)
			bmm_evict(job.src, calls * job.len);
	}
	start = drained_clock();
	for (i = 0; i < calls; i++) {
		bmm_job_do(&job, s->list[k]);
		if (bmm_op_streams(job.op))
			bmm_drain_stores();
		if (!s->cold)
			continue;
		job.dst = (char *)job.dst + job.len;
		if (job.src)
			job.src = (const char *)job.src + job.len;
	}
	return ((drained_clock() - start) << 20) / (calls * job.len) + 1;
}

static uint64_t least_of(const uint64_t *cost, unsigned int nr)
{
	uint64_t least = cost[0];
	unsigned int k;

	for (k = 1; k < nr; k++)
		if (cost[k] < least)
			least = cost[k];
	return least;
}

/**
 * bmm_measure_costs() - measure candidates
 * @sample: what one costs once, at least 1
 * @where:  passed to @sample
 * @nr:     how many there are
 * @cost:   result: the least of each
 *
 * Rounds begin with different candidates: what one leaves dirty is written back
 * while the next one runs. From the third on, one that is a quarter behind is
 * left out, from the fifth on one that is an eighth: its rank here is known.
 */
void bmm_measure_costs(bmm_sample_fn *sample, void *where, unsigned int nr,
		       uint64_t *cost)
{
	unsigned int round, i, k;
	uint64_t least, now;

	for (k = 0; k < nr; k++)
		cost[k] = UINT64_MAX >> 13; /* no overflow in sums of ratios */
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < nr; i++) {
			k = (i + round) % nr;
			least = least_of(cost, nr);
			if (round >= 2 &&
			    cost[k] > least + least / (round < 4 ? 4 : 8))
				continue;
			now = sample(where, k);
			if (now < cost[k])
				cost[k] = now;
		}
}

/**
 * bmm_calibrate() - select the backend for an operation
 * @calls:  the calls it is for
 * @buffer: BMM_CALIBRATE_BYTES, aligned to 4096, of which only copies need more
 *          than BMM_CALIBRATE_EXTENT; its content is lost
 * @result: the backend, and how fast each was
 *
 * Takes 0.1 to 3 ms. In the kernel: not in atomic context, may be preempted
 * anywhere.
 */
void bmm_calibrate(const struct bmm_calls *calls, void *buffer,
		   struct bmm_calibration *result)
{
	const struct bmm_backend *list[BMM_CANDIDATES];
	unsigned int nr = bmm_candidates(calls, list), place, k;
	uint64_t cost[BMM_CANDIDATES], ratio[BMM_CANDIDATES], least, now;
	uint64_t slowest[BMM_CANDIDATES] = { 0 };
	struct bmm_image image = { .size = BMM_LINE, .word = { 1 } };
	struct situation s = { .list = list,
			       .job = { .op = calls->op,
					.dst = buffer,
					.image = &image,
					.len = calls->len } };
	bool copies = calls->op == BMM_COPY || calls->op == BMM_COPY_STREAMING;
	const char *source = (char *)buffer + BMM_CALIBRATE_EXTENT;
	static const unsigned int places[] = { APART, CLOSE };
	int cold;

	bmm_assert(calls->hot || calls->cold);
	if (calls->skewed)
		source += SKEW;
	for (k = 0; k < nr; k++)
		ratio[k] = calls->longer ? calls->longer->cold[k] : 0;
	for (place = 0; place <= (calls->op == BMM_COPY); place++)
		for (cold = !calls->hot; cold <= (calls->cold && !place);
		     cold++) {
			s.job.src = copies ? source + places[place] : NULL;
			s.cold = cold;
			bmm_measure_costs(backend_cost, &s, nr, cost);
			least = least_of(cost, nr);
			for (k = 0; k < nr; k++) {
				if (cost[k] > slowest[k])
					slowest[k] = cost[k];
				now = (cost[k] << 10) / least;
				ratio[k] += now *
					    (cold ? calls->cold : calls->hot);
				if (cold)
					result->cold[k] = now;
			}
		}
	for (k = 0; k < BMM_CANDIDATES; k++)
		bmm_set(&result->rate[k],
			k < nr ? (uint32_t)((1000 << 20) / slowest[k]) : 0);
	least = least_of(ratio, nr);
	for (k = 0; ratio[k] * 97 > least * 100;)
		k++;
	result->selected = list[k];
}

/* "=12.3", GB/s. */
static void add_rate(struct bmm_text *text, uint32_t mb)
{
	char digits[16], *p = digits + sizeof(digits);
	uint32_t tenths = (mb + 50) / 100;

	*--p = 0;
	*--p = (char)('0' + tenths % 10);
	*--p = '.';
	do {
		tenths /= 10;
		*--p = (char)('0' + tenths % 10);
	} while (tenths >= 10);
	*--p = '=';
	bmm_text_add(text, p);
}

/**
 * bmm_calibration_list() - list the backends, how fast they were, and which one
 * is selected
 * @text:     appended to, such as "movnti=36.1 [movdir64b=37.8] generic": all
 *            that can be forced here, with GB/s where they were measured
 * @of:       the calibration, done or not
 * @calls:    what it is for
 * @selected: the backend in brackets
 */
void bmm_calibration_list(struct bmm_text *text,
			  const struct bmm_calibration *of,
			  const struct bmm_calls *calls,
			  const struct bmm_backend *selected)
{
	const struct bmm_backend *list[BMM_CANDIDATES], *backend;
	unsigned int nr = bmm_candidates(calls, list), k = 0;
	const char *space = "";
	uint32_t mb;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		if (!bmm_backend_can(backend, calls->op))
			continue;
		mb = k < nr && backend == list[k] ? bmm_get(&of->rate[k++]) : 0;
		bmm_text_add(text, space);
		bmm_text_add(text, backend == selected ? "[" : "");
		bmm_text_add(text, backend->name);
		if (mb)
			add_rate(text, mb);
		bmm_text_add(text, backend == selected ? "]" : "");
		space = " ";
	}
}
