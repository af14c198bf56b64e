/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew.h - a job of many equal parts, done by several CPUs of a node
 *
 * The caller is a member, and does everything that is left if no other member
 * arrives. Nobody waits for a member that has not begun.
 */
#ifndef BMM_CREW_H
#define BMM_CREW_H

#include <linux/atomic.h>
#include <linux/types.h>

#define BMM_CREW_MOST 32U /* members, no matter what is asked for */

/**
 * struct bmm_crew - a job
 * @part:     does one part, may sleep; every part is done once, by any member,
 *            those of one member in ascending order
 * @job:      passed to all members
 * @own:      the caller's state; every other member gets a copy
 * @own_size: bytes of it
 * @parts:    how many there are
 * @node:     the node whose CPUs do the job; without any, all CPUs
 * @most:     most members, the caller included
 * @next:     private: the next part to do
 * @shared:   result: parts done by members other than the caller
 */
struct bmm_crew {
	void (*part)(const void *job, void *own, unsigned long nr);
	const void *job;
	void *own;
	size_t own_size;
	unsigned long parts;
	int node;
	unsigned int most;
	atomic_long_t next;
	unsigned long shared;
};

unsigned int bmm_crew_most(int node, unsigned int wanted);
void bmm_crew_run(struct bmm_crew *crew);

#endif
