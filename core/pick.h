/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * pick.h - pick the fastest of a few candidates by measuring once
 *
 * A pick has no clock and no randomness, and knows candidates by number: its
 * answers depend only on the calls made to it. Candidates take turns in rounds;
 * any that is clearly slower than the leader drops out; after at most
 * BMM_PICK_ROUNDS rounds the one with the smallest second-least time is kept
 * for good.
 *
 * Thread safety: any number of CPUs at once, without a lock. They may lose each
 * other's samples; every answer is in range. No call orders any other memory
 * access, sleeps or allocates.
 */
#ifndef BMM_PICK_H
#define BMM_PICK_H

#include "bmm.h"

#define BMM_PICK_ROUNDS 9U

/*
 * Bytes of a sample: shorter operations are summed. What one candidate leaves
 * dirty in the L2 cache (1 MiB on Zen 5, 2 MiB on Granite Rapids) the next one
 * has to evict: a sample is not shorter than that.
 */
#define BMM_PICK_SAMPLE (2U << 20)

/**
 * struct bmm_pick - private to pick.c except @nr; valid when zeroed
 * @nr:      candidates; 0 before bmm_pick_start()
 * @skip:    bit k: the caller excludes candidate k
 * @decided: candidate + 1; 0 while measuring
 * @turn:    round * BMM_CANDIDATES + the candidate to measure
 * @disturbed: disturbed samples; maintained, like @before, by the pick's user
 * @before:  bmm_host_disturbed() when the current sample began
 * @bytes:   sum of the short operations in this turn
 * @ns:      time they took
 * @cost:    least and second-least ns per MiB of each candidate
 */
struct bmm_pick {
	uint32_t nr;
	uint32_t skip;
	uint32_t decided;
	uint32_t turn;
	uint32_t disturbed;
	unsigned long before;
	uint64_t bytes;
	uint64_t ns;
	struct {
		uint32_t least, second;
	} cost[BMM_CANDIDATES];
};

void bmm_pick_start(struct bmm_pick *p, unsigned int nr, uint32_t skip);
unsigned int bmm_pick_best(const struct bmm_pick *p);
void bmm_pick_drop(struct bmm_pick *p);
bool bmm_pick_completes(const struct bmm_pick *p, uint64_t bytes);
bool bmm_pick_feed(struct bmm_pick *p, uint32_t turn, uint64_t bytes,
		   uint64_t ns);
uint32_t bmm_pick_rate(const struct bmm_pick *p, unsigned int k);

/* Whether it is decided: then bmm_pick_best() is final. */
static inline bool bmm_pick_decided(const struct bmm_pick *p)
{
	return bmm_get(&p->decided);
}

/* The current turn: which candidate to measure, in which round. */
static inline uint32_t bmm_pick_turn(const struct bmm_pick *p)
{
	return bmm_get(&p->turn);
}

/* The candidate of a turn. */
static inline unsigned int bmm_pick_of(uint32_t turn)
{
	return turn % BMM_CANDIDATES;
}

#endif
