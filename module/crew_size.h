/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew_size.h - how many members a crew should have, by measurement
 *
 * Needs nothing of the kernel: the tests run it against simulated machines. As
 * with picks, any number of CPUs may call at once, without a lock: they may
 * lose each other's figures, but every answer is in range.
 */
#ifndef BMM_CREW_SIZE_H
#define BMM_CREW_SIZE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint32_t u32;
#endif

#define BMM_CREW_MOST	32U /* members, no matter what is asked for */
#define BMM_CREW_ROUNDS 3U  /* with the same number; the best one counts */

/**
 * struct bmm_crew_size - what has been measured; valid when zeroed
 * @members: current number; 0: one
 * @other:   the number before; if that was better, the one after it
 * @rate:    MB/s of @other; 0: there was none
 * @best:    MB/s of @members so far
 * @rounds:  rounds measured with @members
 * @settled: @members is final, and @best its rate
 */
struct bmm_crew_size {
	u32 members;
	u32 other;
	u32 rate;
	u32 best;
	u32 rounds;
	bool settled;
};

unsigned int bmm_crew_members(const struct bmm_crew_size *size,
			      unsigned int most);
void bmm_crew_learn(struct bmm_crew_size *size, unsigned int most,
		    unsigned int by, u32 rate);

#endif
