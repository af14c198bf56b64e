// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calibrate on the job: the calls of the chooser. Every chunk of a settled
 * operation passes here: nothing that it does not need.
 */
#include "choose_private.h"

#define MIB (1UL << 20)

/* The first chunk of a candidate that may be many times slower. */
#define PROBE (MIB / 4)

/* Below, a call and a clock tick are a large part of what is measured. */
#define SAMPLE_MIN 4096U
/* 4 TB/s: a clock that stood still, not a memory. */
#define COST_MIN 256U

/*
 * REP STOSB of no less than the last-level cache goes around it on some CPUs
 * and is then three times faster than in short chunks (measured: 38 to 48
 * instead of 15 GB/s from 32 MiB on, with 32 MiB of cache). So the winner gets
 * long chunks, and a rival that is not much slower in short ones a long one:
 * once soon after calibration if it is known to be of that kind, else rarely.
 */
#define LONG	   (128 * MIB)
#define LONGEST	   (1024 * MIB)
#define TRIAL_LONG (48 * MIB)

/**
 * bmm_choose_key() - the chooser of an operation in a table of them
 * @op:   the operation
 * @len:  its whole length in bytes
 * @node: memory node of the destination; negative if not known
 *
 * Each class of bmm_choose_class() has its own. Node -1 is as node 0; nodes
 * from BMM_CHOOSE_NODES on share the choosers of the nodes below.
 *
 * Return: an index below BMM_CHOOSE_KEYS, whatever the arguments.
 */
unsigned int bmm_choose_key(enum bmm_op op, size_t len, int node)
{
	unsigned int row = node < 0 ? 0 : (unsigned int)node % BMM_CHOOSE_NODES;

	row = row * BMM_OPS + (unsigned int)op % BMM_OPS;
	return row * BMM_CHOOSE_CLASSES + bmm_choose_class(len);
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
	set(&c->long_mask, 0);
	bmm_choose_reset(c);
	set(&c->nr, (uint8_t)candidates_nr);
	return 0;
}

/**
 * bmm_choose_lengthy() - who may be far faster in long chunks
 * @c:    the chooser, of operations that are long enough for it
 * @mask: bit k is set for candidate k
 *
 * Each of them that comes close in short chunks is tried once with a long one,
 * at the second call of bmm_choose_next() after the decision: the winner gets
 * the rest of an operation before, so that the trial is the start of one. It
 * costs at most 1.7 % of 1 GiB.
 */
void bmm_choose_lengthy(struct bmm_chooser *c, unsigned int mask)
{
	set(&c->long_mask, (uint8_t)mask);
	set(&c->long_due, (uint8_t)mask);
}

/**
 * bmm_choose_reset() - forget every sample
 * @c: the chooser
 *
 * It calibrates again, with as many candidates as before.
 */
void bmm_choose_reset(struct bmm_chooser *c)
{
	unsigned int k;

	set(&c->winner, 0);
	set(&c->trial, 0);
	set(&c->armed, 0);
	set(&c->lengthy, 0);
	set(&c->long_due, get(&c->long_mask));
	set(&c->long_won, 0);
	set(&c->cursor, 0);
	set(&c->clock, 0);
	bmm_trial_in(c, GAP_MIN);
	for (k = 0; k < BMM_CHOOSE_MAX; k++) {
		bmm_samples_forget(&c->candidate[k]);
		set(&c->candidate[k].asked, 0);
		set(&c->candidate[k].shun, 0);
		set(&c->candidate[k].brief, 0);
	}
}

static unsigned int contender(struct bmm_chooser *c, unsigned int nr,
			      unsigned int winner)
{
	unsigned int armed;

	if (trial_is_due(c, get(&c->clock)))
		bmm_trial_begin(c, nr, winner);
	armed = get(&c->armed);
	if (!armed)
		return winner;
	/* For one caller: a slow candidate must not get one chunk per CPU. */
	set(&c->armed, 0);
	return armed - 1;
}

/**
 * bmm_choose_next() - which candidate the next chunk takes
 * @c: the chooser
 *
 * Return: a candidate: one that is to be measured, else the winner. 0 if @c was
 * never initialised.
 */
unsigned int bmm_choose_next(struct bmm_chooser *c)
{
	unsigned int nr = get(&c->nr), winner = get(&c->winner);

	if (!nr)
		return 0;
	set(&c->clock, get(&c->clock) + 1);
	if (!winner)
		return some_of(bmm_race_next(c, nr), nr);
	return some_of(contender(c, nr, some_of(winner - 1, nr)), nr);
}

/* @n bytes of @left, but no rest of a quarter or less. */
static size_t part(size_t left, size_t n)
{
	return left <= n + n / 4 ? left : n;
}

/* For long chunks the clock counts MiB; bmm_choose_next() has counted one. */
static void count(struct bmm_chooser *c, size_t n)
{
	if (n >= 2 * MIB)
		set(&c->clock, get(&c->clock) + (uint32_t)(n / MIB) - 1);
}

static size_t winners_part(struct bmm_chooser *c, size_t left)
{
	return part(left, get(&c->long_won) ? LONGEST : LONG);
}

/**
 * bmm_choose_chunk() - how much of an operation to do at once
 * @c:         the chooser
 * @candidate: what bmm_choose_next() has just returned
 * @left:      bytes that are left to do
 *
 * The winner gets up to 128 MiB, or 1 GiB if it won by long chunks (REP STOSB:
 * 45 GB/s by 128 MiB, 49 by 1 GiB). Who is measured gets 256 KiB when nothing
 * is known of it, else 1 MiB, or a 1024th of @left up to 8 MiB; rarely, one
 * that may be better in long chunks gets 48 MiB and what would be a shorter
 * rest. A caller may do less (bounded latency), or let any @candidate do all it
 * has to do.
 *
 * Return: bytes, 1 to @left (0 if @left is 0); a multiple of 256 KiB or @left.
 */
size_t bmm_choose_chunk(struct bmm_chooser *c, unsigned int candidate,
			size_t left)
{
	size_t share = left / 1024 / MIB;

	if (candidate >= get(&c->nr))
		return left;
	if (get(&c->winner) == candidate + 1)
		return winners_part(c, left);
	if (get(&c->trial) == candidate + 1 && get(&c->lengthy))
		return left < 2 * TRIAL_LONG ? left : TRIAL_LONG;
	if (bmm_race_doubts(c, candidate))
		return part(left, PROBE);
	if (share > 8)
		share = 8;
	return part(left, (share ? share : 1) * MIB);
}

static void take_in(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		    unsigned int winner, uint32_t sample)
{
	struct bmm_candidate *candidate = &c->candidate[k];
	uint32_t before = get(&candidate->cost);
	bool changed;

	bmm_samples_add(candidate, sample);
	changed = bmm_samples_cut(candidate, before);
	if (k == winner) {
		if (changed)
			bmm_trial_changed(c, k, before);
		bmm_trial_look_back(c, nr, winner);
	} else if (get(&c->trial) == k + 1) {
		bmm_trial_feed(c, nr, k, winner);
	}
}

/**
 * bmm_choose_feed() - what a chunk took
 * @c:         the chooser
 * @candidate: who did it
 * @bytes:     how much
 * @ns:        how long it took, drain included
 *
 * Ignored: a candidate that is not there, less than 4 KiB, a time of zero, or
 * one that no memory could make (above 4 TB/s).
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
	unsigned int nr = get(&c->nr), winner = get(&c->winner);
	uint32_t sample;

	if (candidate >= nr || bytes < SAMPLE_MIN)
		return;
	sample = bmm_samples_cost(bytes, ns);
	if (sample < COST_MIN)
		return;
	if (winner) {
		/* Of what was done, not offered: a caller may do far less. */
		count(c, bytes);
		take_in(c, nr, candidate, some_of(winner - 1, nr), sample);
	} else {
		bmm_samples_add(&c->candidate[candidate], sample);
		bmm_race_feed(c, nr);
	}
}

/**
 * bmm_choose_settled() - whether nobody is to be measured now
 * @c: the chooser
 *
 * Then bmm_choose_best() is what bmm_choose_next() would say, and a caller with
 * small operations, for which the call and two looks at a clock are dear, may
 * do without them. It should still pass about one operation in 16 through
 * bmm_choose_next() and bmm_choose_feed(): these are what re-trials are counted
 * by, and what shows that the winner has become slower. Changes nothing.
 *
 * Return: true if there is a winner with no rival on trial or due for one;
 * false if @c was never initialised.
 */
bool bmm_choose_settled(const struct bmm_chooser *c)
{
	/* bmm_choose_next() counts its chunk before it looks. */
	return get(&c->winner) && !get(&c->trial) && !get(&c->armed) &&
	       !trial_is_due(c, get(&c->clock) + 1);
}

/**
 * bmm_choose_best() - the candidate that would be used if none were on trial
 * @c: the chooser
 *
 * Changes nothing.
 *
 * Return: a candidate: the winner, else (while it calibrates) the best so far,
 * else the last. 0 if @c was never initialised.
 */
unsigned int bmm_choose_best(const struct bmm_chooser *c)
{
	unsigned int nr = get(&c->nr), winner = get(&c->winner);

	if (!nr)
		return 0;
	return winner ? some_of(winner - 1, nr) : bmm_race_leader(c, nr, nr);
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
