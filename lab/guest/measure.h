/* SPDX-License-Identifier: GPL-2.0-only */
/* How long an operation takes, and the CPU that it runs on. */
#ifndef MEASURE_H
#define MEASURE_H

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

#endif
