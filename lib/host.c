// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* core/bmm_host.h for a process, and the library's version. */
#include <time.h>

#include "bmm.h"

uint64_t bmm_host_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/**
 * bmm_version() - the version of libbulkmm
 *
 * Return: the version, such as "0.1.0"; a string that never changes.
 */
const char *bmm_version(void)
{
	return BMM_VERSION;
}

/**
 * bmm_version_number() - the version of libbulkmm as a number
 *
 * A program compares it with BMM_VERSION_NUMBER, the version of the header that
 * it was compiled with: less means that an older library was loaded.
 *
 * Return: major * 10000 + minor * 100 + patch.
 */
int bmm_version_number(void)
{
	return BMM_VERSION_NUMBER;
}
