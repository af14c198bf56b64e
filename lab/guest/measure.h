/* SPDX-License-Identifier: GPL-2.0-only */
/* How long an operation takes, and the work of it that is counted (mark.h). */
#ifndef MEASURE_H
#define MEASURE_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "mark.h"

/* Nanoseconds since some moment. */
static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000UL + (uint64_t)t.tv_nsec;
}

/* Run on a CPU from now on, or (-1) on any. */
static inline void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (cpu < 0 || cpu == i)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Stay on this CPU: work is counted there, and what is done on another CPU in
 * between would be missed.
 */
static inline void stay(void)
{
	run_on(sched_getcpu());
}

/* Count what follows in a slot of the record; in any other number, not. */
static inline void mark_begin(int slot)
{
	if (slot == 0)
		bmm_mark(BMM_MARK_BEGIN(0));
	else if (slot == 1)
		bmm_mark(BMM_MARK_BEGIN(1));
}

static inline void mark_end(int slot)
{
	if (slot == 0)
		bmm_mark(BMM_MARK_END(0));
	else if (slot == 1)
		bmm_mark(BMM_MARK_END(1));
}

#endif
