// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* core/bmm_host.h for a process: the clock, the environment. */
#include <stdlib.h>
#include <time.h>

#include "bmm_host.h"

uint64_t bmm_host_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* NULL for a program that runs with more rights than its user. */
const char *bmm_host_setting(const char *variable)
{
	return secure_getenv(variable);
}
