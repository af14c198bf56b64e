/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew.h - a job of many equal parts that several CPUs of a node do together
 *
 * The caller is a member, and does all that is left if no other comes. Nobody
 * waits for one who has not begun.
 */
#ifndef BMM_CREW_H
#define BMM_CREW_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "crew_size.h"

/**
 * struct bmm_crew - a job
 * @part:     does one part, and sleeps if it likes; every part is done once, by
 *            any member, those of one member in ascending order
 * @job:      what all members are told
 * @own:      the caller's; each other member has a copy of its own
 * @own_size: bytes of it
 * @bytes:    that a part stores
 * @end:      one past the last part
 * @node:     whose CPUs do it
 * @most:     members at most
 * @size:     how many there are to be, measured; NULL: @most of them
 * @next:     private: the part that is to be done next
 * @stop:     private: one past the last part of this round
 * @shared:   parts that were not the caller's, when all is done
 */
struct bmm_crew {
	void (*part)(const void *job, void *own, unsigned long nr);
	const void *job;
	void *own;
	size_t own_size;
	u64 bytes;
	unsigned long end;
	int node;
	unsigned int most;
	struct bmm_crew_size *size;
	atomic_long_t next;
	unsigned long stop;
	unsigned long shared;
};

unsigned int bmm_crew_most(int node, unsigned int wanted);
void bmm_crew_run(struct bmm_crew *crew, unsigned long first);

#endif
