/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * turn.h - an operation that may be a sample: done by the candidate whose turn
 * it is while a pick measures, and by the one decided on from then on
 *
 *	backend = bmm_turn_begin(&turn, pick, op);
 *	... do n bytes with backend; bmm_drain_stores() if it streams ...
 *	bmm_turn_end(&turn, n);
 *
 * Thread safety: as in pick.h; a turn belongs to its caller.
 */
#ifndef BMM_TURN_H
#define BMM_TURN_H

#include "bmm.h"
#include "pick.h"

/**
 * struct bmm_turn - a sample in progress
 * @pick:      the pick to report to; NULL if it needs no sample
 * @number:    bmm_pick_turn() at the start
 * @disturbed: bmm_host_disturbed() then, or when the sample began
 * @begun:     bmm_host_clock() at the start
 */
struct bmm_turn {
	struct bmm_pick *pick;
	uint32_t number;
	unsigned long disturbed;
	uint64_t begun;
};

const struct bmm_backend *bmm_turn_begin(struct bmm_turn *turn,
					 struct bmm_pick *pick, enum bmm_op op);
bool bmm_turn_end(struct bmm_turn *turn, size_t bytes);

void bmm_turn_job(struct bmm_pick *pick, const struct bmm_job *job);

const struct bmm_backend *bmm_pick_backend(const struct bmm_pick *pick,
					   enum bmm_op op);
size_t bmm_pick_list(const struct bmm_pick *pick, enum bmm_op op,
		     const struct bmm_backend *forced, char *buf, size_t size);

#endif
