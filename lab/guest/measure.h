/* SPDX-License-Identifier: GPL-2.0-only */
/* How long an operation takes, and the CPU on which its work is counted. */
#ifndef MEASURE_H
#define MEASURE_H

#ifndef _GNU_SOURCE
#error "for cpu_set_t: define _GNU_SOURCE before the first include"
#endif

#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment. */
static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000UL + (uint64_t)t.tv_nsec;
}

/*
 * Stay on this CPU: work is counted there (mark.h), and what is done on another
 * CPU in between would be missed.
 */
static inline void stay(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

#endif
