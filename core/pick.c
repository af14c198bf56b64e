// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Measure once, then keep the winner, as raid6 and xor_blocks in Linux do; but
 * measure on the first real work, and drop slow candidates early, so that there
 * is no calibration to wait for.
 *
 * Disturbances only make a sample longer. Candidates are therefore ranked by
 * their least time while measuring; the decision uses the second-least, because
 * one time may be too good (lines that were still in the cache).
 */
#include "pick.h"

#define UNKNOWN UINT32_MAX
#define SLACK	5U /* the narrowest margin is 1/32 of the leader */

/**
 * bmm_pick_drop() - discard the sample being summed
 * @p: the pick
 */
void bmm_pick_drop(struct bmm_pick *p)
{
	bmm_set(&p->bytes, 0);
	bmm_set(&p->ns, 0);
}

/**
 * bmm_pick_completes() - whether an operation will complete a sample
 * @p:     the pick
 * @bytes: length of the operation
 */
bool bmm_pick_completes(const struct bmm_pick *p, uint64_t bytes)
{
	return bmm_get(&p->bytes) + bytes >= BMM_PICK_SAMPLE;
}

/**
 * bmm_pick_start() - start measuring from scratch
 * @p:    the pick; its old content does not matter
 * @nr:   candidates, 1 to BMM_CANDIDATES; a single one is not measured
 * @skip: bit k is set for each candidate not to be measured; never the first,
 *        which serves until something is known
 */
void bmm_pick_start(struct bmm_pick *p, unsigned int nr, uint32_t skip)
{
	unsigned int k;

	for (k = 0; k < BMM_CANDIDATES; k++) {
		bmm_set(&p->cost[k].least, UNKNOWN);
		bmm_set(&p->cost[k].second, UNKNOWN);
	}
	bmm_pick_drop(p);
	bmm_set(&p->turn, 0);
	bmm_set(&p->skip, skip);
	bmm_set(&p->decided, nr == 1);
	bmm_set(&p->nr, nr);
}

/* On a tie the first one, which is the better guess. */
static unsigned int best_by(const struct bmm_pick *p, bool second)
{
	unsigned int nr = bmm_get(&p->nr), best = 0, k;
	uint32_t least = UNKNOWN, cost;

	for (k = 0; k < nr; k++) {
		cost = bmm_get(second ? &p->cost[k].second : &p->cost[k].least);
		if (cost < least) {
			least = cost;
			best = k;
		}
	}
	return best;
}

/**
 * bmm_pick_best() - the candidate to use
 * @p: the pick
 *
 * Return: the one decided on, else the leader so far; 0 if nothing is known.
 */
unsigned int bmm_pick_best(const struct bmm_pick *p)
{
	uint32_t decided = bmm_get(&p->decided);

	return decided ? decided - 1 : best_by(p, false);
}

/*
 * After two samples a candidate drops out if it is 25 % behind the leader, then
 * 12 % ... 3 %; but only if its two best samples agree, else one was disturbed.
 */
static bool in_race(const struct bmm_pick *p, unsigned int k, unsigned int round)
{
	uint64_t leader = bmm_get(&p->cost[best_by(p, false)].least);
	uint64_t least = bmm_get(&p->cost[k].least);

	if (bmm_get(&p->skip) >> k & 1)
		return false;
	if (round < 2 || bmm_get(&p->cost[k].second) > least + (least >> 3))
		return true;
	return least <= leader + (leader >> (round < SLACK ? round : SLACK));
}

static bool alone(const struct bmm_pick *p, unsigned int round)
{
	unsigned int nr = bmm_get(&p->nr), k, n = 0;

	for (k = 0; k < nr; k++)
		n += in_race(p, k, round);
	return n <= 1;
}

/* The turn after this one; a round ends with its last candidate in the race. */
static uint32_t turn_after(const struct bmm_pick *p, uint32_t turn)
{
	unsigned int round = turn / BMM_CANDIDATES;
	unsigned int k = bmm_pick_of(turn) + 1, nr = bmm_get(&p->nr);

	for (; k < nr; k++)
		if (in_race(p, k, round))
			return round * BMM_CANDIDATES + k;
	round++;
	for (k = 0; k < nr && !in_race(p, k, round);)
		k++;
	return round * BMM_CANDIDATES + k;
}

static void keep(struct bmm_pick *p, unsigned int k, uint32_t cost)
{
	uint32_t least = bmm_get(&p->cost[k].least);

	if (cost < least) {
		bmm_set(&p->cost[k].least, cost);
		bmm_set(&p->cost[k].second, least);
	} else if (cost < bmm_get(&p->cost[k].second)) {
		bmm_set(&p->cost[k].second, cost);
	}
}

/* Whether the operations so far make a sample: *@bytes and *@ns become it. */
static bool summed(struct bmm_pick *p, uint64_t *bytes, uint64_t *ns)
{
	bool completes = bmm_pick_completes(p, *bytes);

	/* GCC 12 gets the sums wrong where __atomic_add_fetch() returns them. */
	__atomic_fetch_add(&p->bytes, *bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&p->ns, *ns, __ATOMIC_RELAXED);
	if (!completes)
		return false;
	*bytes = bmm_get(&p->bytes);
	*ns = bmm_get(&p->ns);
	bmm_pick_drop(p);
	return *bytes;
}

/* ns per MiB, 1 to UNKNOWN - 1; saturates instead of overflowing. */
static uint32_t cost_of(uint64_t bytes, uint64_t ns)
{
	uint64_t cost = (ns < 1ULL << 43 ? ns << 20 : UINT64_MAX) / bytes;

	if (cost >= UNKNOWN)
		return UNKNOWN - 1;
	return cost ? (uint32_t)cost : 1;
}

/**
 * bmm_pick_feed() - report how long an operation took
 * @p:     the pick
 * @turn:  bmm_pick_turn() when it began: its candidate did the operation
 * @bytes: length of the operation, at least 1
 * @ns:    time it took, drain included
 *
 * A sample that arrives after its turn is ignored: another CPU completed it. So
 * is one for a pick that was reset meanwhile (@p->nr is 0).
 *
 * Return: true for the one call that decides.
 */
bool bmm_pick_feed(struct bmm_pick *p, uint32_t turn, uint64_t bytes,
		   uint64_t ns)
{
	unsigned int round;
	uint32_t next;

	if (!bmm_get(&p->nr) || bmm_pick_decided(p) ||
	    bmm_get(&p->turn) != turn || !summed(p, &bytes, &ns))
		return false;
	keep(p, bmm_pick_of(turn), cost_of(bytes, ns));
	next = turn_after(p, turn);
	if (!__atomic_compare_exchange_n(&p->turn, &turn, next, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	round = next / BMM_CANDIDATES;
	if (round < BMM_PICK_ROUNDS && !alone(p, round))
		return false;
	/* A candidate left alone leads, but may have few samples. */
	bmm_set(&p->decided, best_by(p, round == BMM_PICK_ROUNDS) + 1);
	return true;
}

/**
 * bmm_pick_rate() - how fast a candidate was
 * @p: the pick
 * @k: which candidate
 *
 * Return: MB/s by its second-least time, which decides, or by its only one;
 * 0 if it was never measured.
 */
uint32_t bmm_pick_rate(const struct bmm_pick *p, unsigned int k)
{
	uint32_t cost = bmm_get(&p->cost[k].second);

	if (cost == UNKNOWN)
		cost = bmm_get(&p->cost[k].least);
	/* another CPU may be starting it */
	if (!bmm_get(&p->nr) || !cost || cost == UNKNOWN)
		return 0;
	return (uint32_t)((1048576ULL * 1000) / cost);
}
