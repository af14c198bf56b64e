/* SPDX-License-Identifier: GPL-2.0-only */
/* How long an operation takes, and the work of it that is counted (mark.h). */
#ifndef MEASURE_H
#define MEASURE_H

#ifndef _GNU_SOURCE
#error "for cpu_set_t: define _GNU_SOURCE before the first include"
#endif

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

/*
 * Stay on this CPU: work is counted there, and what is done on another CPU in
 * between would be missed.
 */
static inline void stay(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
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
