/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * pick.h - the fastest of a few candidates, measured once and then kept
 *
 * A pick has no clock and no source of chance, and knows candidates by their
 * numbers: what it answers depends only on the calls made to it. They take
 * turns in rounds; whoever is clearly slower than the leader drops out; after
 * BMM_PICK_ROUNDS rounds at most the one with the least second-least time is
 * decided on, for good.
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
 * dirty in the second-level cache (1 MiB on Zen 5, 2 MiB on Granite Rapids) the
 * next one has to evict: a sample is not shorter than that.
 */
#define BMM_PICK_SAMPLE (2U << 20)

/**
 * struct bmm_pick - private to pick.c but for @nr; zero is a valid start
 * @nr:      candidates; 0 before bmm_pick_start()
 * @skip:    bit k: candidate k is left out, for a reason of the caller's
 * @decided: candidate + 1; 0 while it measures
 * @turn:    round * BMM_CANDIDATES + the candidate that is to be measured
 * @disturbed: disturbed samples; counted, like @before, by the user of the pick
 * @before:  bmm_host_disturbed() when the sample in the making began
 * @bytes:   what short operations have written in this turn
 * @ns:      and what they took
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

/* Whether it is decided: then bmm_pick_best() is the one for good. */
static inline bool bmm_pick_decided(const struct bmm_pick *p)
{
	return bmm_get(&p->decided);
}

/* The turn that a sample is now wanted for: its candidate, and when. */
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
