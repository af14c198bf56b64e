// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calibrate on the job.
 *
 * Calibration is a race in rounds. Each round hands one chunk to each
 * candidate that is still in the race; who is clearly slower drops out, at
 * once if by a factor of two. When the leader has a full window, it wins.
 *
 * Later, a rival is put on trial: when its turn comes (soon after a decision,
 * ever more rarely then, since a decision may have been bad luck or may have
 * grown old), or at once when the winner has become slower than the rival is
 * remembered to be. A trial ends with the first sample that is no better; only
 * several better ones dethrone the winner.
 *
 * Every field is read and written by relaxed atomic loads and stores and by
 * nothing else: no read-modify-write, for which some compilers call a library
 * that the kernel does not have. What two CPUs do at once is then lost, not
 * corrupt; indices are checked where they are read.
 */
#include "choose.h"

#define get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

#define MIB	(1UL << 20)
#define UNKNOWN (~0U) /* a cost: slower than any */

/* The first chunk of a candidate that may be many times slower. */
#define PROBE (MIB / 4)

/* Below, a call and a clock tick are a large part of what is measured. */
#define SAMPLE_MIN 4096U
/* 4 TB/s: a clock that stood still, not a memory. */
#define COST_MIN 256U

#define TRIAL_SAMPLES 5U
#define SLOW	      4U /* times slower than the best: leave out a turn */
#define SHUN_MAX      4U /* turns */

#define GAP_MIN 16U
#define GAP_MAX 1024U

/*
 * REP STOSB of more than the last-level cache goes around it on some CPUs and
 * is then three times faster than in short chunks (measured: 44 instead of 14
 * GB/s from 48 MiB on, with 32 MiB of cache). So the winner gets long chunks,
 * and a rival that is not much slower in short ones a long one now and then.
 */
#define LONG	    (128 * MIB)
#define TRIAL_LONG  (64 * MIB)
#define BRIEF_TURNS 7U

#define PATIENCE 256U /* chunks of calibration, if samples never come */

/* In eighths of the best: who stays in the race after so many samples. */
static const uint8_t race_limit[BMM_CHOOSE_WINDOW] = { 0,  16, 14, 13, 12,
						       12, 11, 11, 10 };

static uint32_t cost_of(uint64_t bytes, uint64_t ns)
{
	uint64_t cost;

	if (ns >= 1ULL << 43)
		ns = 1ULL << 43;
	cost = (ns << 20) / bytes;
	return cost < UNKNOWN ? (uint32_t)cost : UNKNOWN - 1;
}

static uint32_t cost(const struct bmm_chooser *c, unsigned int k)
{
	uint32_t known = get(&c->candidate[k].cost);

	return known ? known : UNKNOWN;
}

/* The lower one of two: what disturbs a sample makes it longer. */
static uint32_t median(const struct bmm_candidate *candidate, unsigned int n)
{
	uint32_t sorted[BMM_CHOOSE_WINDOW], sample;
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		sample = get(&candidate->sample[i]);
		for (j = i; j && sorted[j - 1] > sample; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = sample;
	}
	return sorted[(n - 1) / 2];
}

static void record(struct bmm_candidate *candidate, uint32_t sample)
{
	unsigned int n = get(&candidate->samples), i;

	if (n < BMM_CHOOSE_WINDOW)
		set(&candidate->samples, (uint8_t)++n);
	for (i = n - 1; i; i--)
		set(&candidate->sample[i], get(&candidate->sample[i - 1]));
	set(&candidate->sample[0], sample);
	set(&candidate->cost, median(candidate, n));
}

/*
 * Two samples in a row that are far from the median: times have changed, and
 * what was measured before must not outvote them.
 */
static bool notice_change(struct bmm_candidate *candidate, uint32_t before)
{
	uint64_t a = get(&candidate->sample[0]);
	uint64_t b = get(&candidate->sample[1]);
	uint64_t old = before;

	if (get(&candidate->samples) < 3)
		return false;
	if ((2 * a <= 3 * old || 2 * b <= 3 * old) &&
	    (3 * a >= 2 * old || 3 * b >= 2 * old))
		return false;
	set(&candidate->samples, 2);
	set(&candidate->cost, median(candidate, 2));
	return true;
}

static void forget(struct bmm_candidate *candidate)
{
	set(&candidate->samples, 0);
	set(&candidate->cost, 0);
}

/*
 * The candidate of least cost but for one. Callers list from the slowest to
 * the fastest guess: the last one stands if nothing is known.
 */
static unsigned int leader(const struct bmm_chooser *c, unsigned int nr,
			   unsigned int except)
{
	unsigned int best = nr - 1, k;

	if (best == except && best)
		best--;
	for (k = best; k--;)
		if (k != except && cost(c, k) < cost(c, best))
			best = k;
	return best;
}

static bool in_race(const struct bmm_chooser *c, unsigned int k, uint32_t best)
{
	unsigned int n = get(&c->candidate[k].samples);

	if (!n || n >= BMM_CHOOSE_WINDOW)
		return !n;
	return 8ULL * cost(c, k) < (uint64_t)race_limit[n] * best;
}

static bool race_is_over(const struct bmm_chooser *c, unsigned int nr)
{
	uint32_t best = cost(c, leader(c, nr, nr));
	unsigned int k;

	for (k = 0; k < nr; k++)
		if (in_race(c, k, best))
			return false;
	return true;
}

static void next_trial_in(struct bmm_chooser *c, uint32_t gap)
{
	set(&c->gap, gap);
	set(&c->due, get(&c->clock) + gap);
}

/* The more a trial costs, the rarer it is: one that stalls is left alone. */
static void shun_if_slow(struct bmm_chooser *c, unsigned int k,
			 unsigned int winner)
{
	uint32_t turns = get(&c->candidate[k].cost) / cost(c, winner) / SLOW;

	set(&c->candidate[k].shun,
	    (uint8_t)(turns < SHUN_MAX ? turns : SHUN_MAX));
}

static void crown(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		  uint32_t gap)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		shun_if_slow(c, i, k);
	set(&c->winner, (uint8_t)(k + 1));
	set(&c->trial, 0);
	set(&c->armed, 0);
	next_trial_in(c, gap < GAP_MIN ? GAP_MIN : gap);
}

/* Who runs next, from the fastest guess down; @nr if all have had their go. */
static unsigned int race_next(struct bmm_chooser *c, unsigned int nr)
{
	uint32_t best = cost(c, leader(c, nr, nr));
	unsigned int k = get(&c->cursor), n, asked;

	for (n = 0; n < nr; n++) {
		k = k && k < nr ? k - 1 : nr - 1;
		asked = get(&c->candidate[k].asked);
		/* Many CPUs may ask before the first of them has an answer. */
		if (asked >= BMM_CHOOSE_WINDOW || !in_race(c, k, best))
			continue;
		set(&c->candidate[k].asked, (uint8_t)(asked + 1));
		set(&c->cursor, (uint8_t)k);
		return k;
	}
	return nr;
}

static unsigned int calibrate(struct bmm_chooser *c, unsigned int nr)
{
	unsigned int k = race_next(c, nr);

	if (k < nr)
		return k;
	k = leader(c, nr, nr);
	/* All is handed out, but some callers brought no sample back. */
	if (get(&c->clock) > PATIENCE)
		crown(c, nr, k, GAP_MIN);
	return k;
}

/* What was measured in other times does not count in a trial. */
static void try(struct bmm_chooser *c, unsigned int k, bool lengthy)
{
	set(&c->lengthy, lengthy);
	forget(&c->candidate[k]);
	set(&c->trial, (uint8_t)(k + 1));
	set(&c->armed, (uint8_t)(k + 1));
}

/* A long chunk is dear: for one that may well win, and rarely. */
static bool may_be_long(struct bmm_chooser *c, unsigned int k,
			unsigned int winner)
{
	unsigned int brief = get(&c->candidate[k].brief);
	uint64_t limit = 2ULL * cost(c, winner);

	if (get(&c->gap) < GAP_MAX || cost(c, k) > limit)
		return false;
	set(&c->candidate[k].brief, (uint8_t)(brief ? brief - 1 : BRIEF_TURNS));
	return !brief;
}

/* It is time: the rival whose turn it is; rarer after every full circle. */
static void retry(struct bmm_chooser *c, unsigned int nr, unsigned int winner)
{
	unsigned int k = get(&c->cursor), n, shun;
	uint32_t gap = get(&c->gap);

	for (n = 0; n < nr; n++) {
		if (!k && gap < GAP_MAX)
			gap *= 8;
		k = k && k < nr ? k - 1 : nr - 1;
		shun = get(&c->candidate[k].shun);
		if (k == winner)
			continue;
		if (!shun) {
			try(c, k, may_be_long(c, k, winner));
			break;
		}
		set(&c->candidate[k].shun, (uint8_t)(shun - 1));
	}
	set(&c->cursor, (uint8_t)k);
	next_trial_in(c, gap);
}

static unsigned int settled(struct bmm_chooser *c, unsigned int nr,
			    unsigned int winner)
{
	unsigned int armed;

	if ((int32_t)(get(&c->due) - get(&c->clock)) <= 0)
		retry(c, nr, winner);
	armed = get(&c->armed);
	if (!armed)
		return winner;
	/* For one caller: a slow candidate must not get one chunk per CPU. */
	set(&c->armed, 0);
	return armed - 1;
}

/*
 * A sample of the one on trial has come. It must be better than the winner
 * every time, so that chance alone does not switch, and by a margin in all.
 */
static void judge(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		  unsigned int winner)
{
	uint64_t rival = cost(c, k), best = cost(c, winner);

	if (get(&c->candidate[k].sample[0]) >= best) {
		set(&c->trial, 0);
		shun_if_slow(c, k, winner);
	} else if (get(&c->candidate[k].samples) < TRIAL_SAMPLES) {
		set(&c->armed, (uint8_t)(k + 1));
	} else if (rival + rival / 16 < best) {
		crown(c, nr, k, get(&c->gap) / 8);
	} else {
		set(&c->trial, 0);
	}
}

/*
 * A sample of the winner has come: was a rival better than it is now? Asked of
 * a full window, or when notice_change() has just cut it. A rival that loses
 * its trial is then remembered as it is now, so this cannot go on for ever.
 */
static void look_back(struct bmm_chooser *c, unsigned int nr,
		      unsigned int winner)
{
	unsigned int samples = get(&c->candidate[winner].samples);
	unsigned int rival = leader(c, nr, winner);
	uint64_t remembered = cost(c, rival);

	if (samples != BMM_CHOOSE_WINDOW && samples != 2)
		return;
	if (rival == winner || get(&c->trial))
		return;
	if (remembered + remembered / 8 < cost(c, winner))
		try(c, rival, false);
}

static unsigned int in_range(unsigned int k, unsigned int nr)
{
	return k < nr ? k : nr - 1;
}

/**
 * bmm_choose_key() - the chooser of an operation in a table of them
 * @op:   the operation
 * @len:  its whole length in bytes
 * @node: memory node of the destination; negative if not known
 *
 * Classes of length: below 64 KiB, below 1 MiB, below 64 MiB (may stay in the
 * cache), and above. Node -1 is as node 0; nodes from BMM_CHOOSE_NODES on
 * share the choosers of the nodes below.
 *
 * Return: an index below BMM_CHOOSE_KEYS, whatever the arguments.
 */
unsigned int bmm_choose_key(enum bmm_choose_op op, size_t len, int node)
{
	unsigned int class = 0U + (len >= 1UL << 16) + (len >= 1UL << 20) +
			     (len >= 1UL << 26);
	unsigned int row = node < 0 ? 0 : (unsigned int)node % BMM_CHOOSE_NODES;

	row = row * BMM_CHOOSE_OPS + (unsigned int)op % BMM_CHOOSE_OPS;
	return row * BMM_CHOOSE_CLASSES + class;
}

/**
 * bmm_chooser_init() - start to choose
 * @c:             the chooser; what it held does not matter
 * @candidates_nr: how many there are, 1 to BMM_CHOOSE_MAX, listed from the
 *                 slowest guess to the fastest
 *
 * May be done by the first user of a zeroed chooser (@c->nr is 0 until then),
 * by several at once: samples may get lost.
 *
 * Return: 0, or -BMM_EINVAL for a number out of range (nothing is changed).
 */
int bmm_chooser_init(struct bmm_chooser *c, unsigned int candidates_nr)
{
	if (!candidates_nr || candidates_nr > BMM_CHOOSE_MAX)
		return -BMM_EINVAL;
	bmm_choose_reset(c);
	set(&c->nr, (uint8_t)candidates_nr);
	return 0;
}

/**
 * bmm_choose_reset() - forget every sample and a forced candidate
 * @c: the chooser
 *
 * It calibrates again, with as many candidates as before.
 */
void bmm_choose_reset(struct bmm_chooser *c)
{
	unsigned int k;

	set(&c->forced, 0);
	set(&c->winner, 0);
	set(&c->trial, 0);
	set(&c->armed, 0);
	set(&c->lengthy, 0);
	set(&c->cursor, 0);
	set(&c->clock, 0);
	next_trial_in(c, GAP_MIN);
	for (k = 0; k < BMM_CHOOSE_MAX; k++) {
		forget(&c->candidate[k]);
		set(&c->candidate[k].asked, 0);
		set(&c->candidate[k].shun, 0);
		set(&c->candidate[k].brief, 0);
	}
}

/**
 * bmm_choose_force() - use this candidate, whatever was measured
 * @c:         the chooser
 * @candidate: which, or BMM_CHOOSE_AUTO to choose again by what was measured
 *             before it was forced
 *
 * Return: 0, or -BMM_EINVAL if there is no such candidate (nothing is changed).
 */
int bmm_choose_force(struct bmm_chooser *c, unsigned int candidate)
{
	if (candidate != BMM_CHOOSE_AUTO && candidate >= get(&c->nr))
		return -BMM_EINVAL;
	set(&c->forced, (uint8_t)(candidate + 1));
	return 0;
}

/**
 * bmm_choose_next() - which candidate the next chunk takes
 * @c: the chooser
 *
 * Return: a candidate: the forced one, else one that is to be measured, else
 * the winner. 0 if @c was never initialised.
 */
unsigned int bmm_choose_next(struct bmm_chooser *c)
{
	unsigned int nr = get(&c->nr), forced = get(&c->forced);
	unsigned int winner = get(&c->winner);

	if (!nr)
		return 0;
	if (forced)
		return in_range(forced - 1, nr);
	set(&c->clock, get(&c->clock) + 1);
	if (!winner)
		return in_range(calibrate(c, nr), nr);
	return in_range(settled(c, nr, in_range(winner - 1, nr)), nr);
}

/* @n bytes of @left, but no small rest. */
static size_t part(size_t left, size_t n)
{
	return left - left / 5 <= n ? left : n;
}

/* For long chunks the clock counts MiB; bmm_choose_next() has counted one. */
static size_t long_part(struct bmm_chooser *c, size_t left, size_t n)
{
	n = part(left, n);
	if (n >= 2 * MIB)
		set(&c->clock, get(&c->clock) + (uint32_t)(n / MIB) - 1);
	return n;
}

/**
 * bmm_choose_chunk() - how much of an operation to do at once
 * @c:         the chooser
 * @candidate: what bmm_choose_next() has just returned
 * @left:      bytes that are left to do
 *
 * The winner gets up to 128 MiB, a forced one all. Who is measured gets 256 KiB
 * when nothing is known of it, else 1 MiB, or a 1024th of @left up to 8 MiB;
 * rarely, one that may be better in long chunks gets 64 MiB. A caller may do
 * less (bounded latency), or let any @candidate do all it has to do.
 *
 * Return: bytes, 1 to @left (0 if @left is 0); a multiple of 256 KiB or @left.
 */
size_t bmm_choose_chunk(struct bmm_chooser *c, unsigned int candidate,
			size_t left)
{
	size_t mib = left >> 30;

	if (get(&c->forced) || candidate >= get(&c->nr))
		return left;
	if (get(&c->winner) == candidate + 1)
		return long_part(c, left, LONG);
	if (get(&c->trial) == candidate + 1 && get(&c->lengthy))
		return long_part(c, left, TRIAL_LONG);
	if (!get(&c->candidate[candidate].samples))
		return part(left, PROBE);
	if (mib > 8)
		mib = 8;
	return part(left, (mib ? mib : 1) * MIB);
}

static void take_in(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		    uint32_t sample)
{
	unsigned int winner = get(&c->winner);
	uint32_t before = get(&c->candidate[k].cost);
	bool changed;

	record(&c->candidate[k], sample);
	if (!winner) {
		if (race_is_over(c, nr))
			crown(c, nr, leader(c, nr, nr), GAP_MIN);
		return;
	}
	winner = in_range(winner - 1, nr);
	changed = notice_change(&c->candidate[k], before);
	if (k == winner) {
		/* Others may have changed as well: go around soon. */
		if (changed)
			next_trial_in(c, GAP_MIN);
		look_back(c, nr, winner);
	} else if (get(&c->trial) == k + 1) {
		judge(c, nr, k, winner);
	}
}

/**
 * bmm_choose_feed() - what a chunk took
 * @c:         the chooser
 * @candidate: who did it
 * @bytes:     how much
 * @ns:        how long it took, drain included
 *
 * Ignored: a candidate that is not there, less than 4 KiB, a time of zero or
 * one that no memory could make (above 4 TB/s), and all while one is forced.
 * A single slow sample never costs the winner its place. A caller that knows
 * that it was interrupted (preempted, moved to another CPU) had better not feed
 * that sample: a candidate whose only one it is stays away for gigabytes.
 *
 * Not every chunk of the winner need be fed: what is not fed cannot show that
 * it has become slower.
 */
void bmm_choose_feed(struct bmm_chooser *c, unsigned int candidate,
		     size_t bytes, uint64_t ns)
{
	unsigned int nr = get(&c->nr);
	uint32_t sample;

	if (candidate >= nr || bytes < SAMPLE_MIN || get(&c->forced))
		return;
	sample = cost_of(bytes, ns);
	if (sample >= COST_MIN)
		take_in(c, nr, candidate, sample);
}

/**
 * bmm_choose_best() - the candidate that would be used if none were on trial
 * @c: the chooser
 *
 * Changes nothing.
 *
 * Return: a candidate: the forced one, else the winner, else (while it
 * calibrates) the best so far, else the last. 0 if @c was never initialised.
 */
unsigned int bmm_choose_best(const struct bmm_chooser *c)
{
	unsigned int nr = get(&c->nr), best = get(&c->forced);

	if (!nr)
		return 0;
	if (!best)
		best = get(&c->winner);
	return best ? in_range(best - 1, nr) : leader(c, nr, nr);
}

/**
 * bmm_choose_cost() - what a candidate was last seen to take
 * @c:         the chooser
 * @candidate: which
 *
 * Return: ns per MiB, median of the last samples; 0 if there is none.
 */
uint32_t bmm_choose_cost(const struct bmm_chooser *c, unsigned int candidate)
{
	return candidate < get(&c->nr) ? get(&c->candidate[candidate].cost) : 0;
}
