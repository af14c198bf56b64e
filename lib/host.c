// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* core/bmm_host.h for a process: the clock, disturbances, the environment. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bmm_host.h"

uint64_t bmm_host_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Called only while something is measured: it is a system call. */
unsigned long bmm_host_disturbed(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		return 0;
	return (unsigned long)(usage.ru_minflt + usage.ru_majflt +
			       usage.ru_nvcsw + usage.ru_nivcsw);
}

/* NULL for a program that runs with more rights than its user. */
const char *bmm_host_setting(const char *variable)
{
	return secure_getenv(variable);
}
