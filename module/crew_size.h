/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew_size.h - how many do a job together, by what was measured
 *
 * Nothing of the kernel is needed here: the tests run it against machines of
 * their own. As with picks, any number of CPUs may call at once, without a
 * lock: they may lose each other's figures, every answer is in range.
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

#define BMM_CREW_MOST	32U /* members, whatever is asked for */
#define BMM_CREW_ROUNDS 3U  /* with the same number, of which the best counts */

/**
 * struct bmm_crew_size - what is known; zero is a valid start
 * @members: in force; 0: one
 * @other:   the number before; when that was better, the one after it
 * @rate:    MB/s of @other; 0: there was none
 * @best:    MB/s of @members so far
 * @rounds:  that were measured with @members
 * @settled: @members it is, for good, and @best its rate
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
