// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Persistent memory: writing back what may still be in a cache. */
#include "bmm.h"

#if defined(__x86_64__)
#define FENCE "sfence"

static size_t line_bytes(void)
{
	return 64;
}

/* CLWB keeps the line; CLFLUSH, which every CPU has, waits for each one. */
enum way {
	CLFLUSH,
	CLFLUSHOPT,
	CLWB
};

static int way_here(void)
{
	if (bmm_host_has(BMM_CPU_CLWB))
		return CLWB;
	return bmm_host_has(BMM_CPU_CLFLUSHOPT) ? CLFLUSHOPT : CLFLUSH;
}

static void write_back(const char *line, int way)
{
	if (way == CLWB)
		__asm__ volatile("clwb (%0)" ::"r"(line) : "memory");
	else if (way == CLFLUSHOPT)
		__asm__ volatile("clflushopt (%0)" ::"r"(line) : "memory");
	else
		__asm__ volatile("clflush (%0)" ::"r"(line) : "memory");
}
#elif defined(__aarch64__)
#define FENCE "dsb sy"

/* CTR_EL0: bits 19 to 16 are log2 of the 4-byte words of the smallest line. */
static size_t line_bytes(void)
{
	uint64_t ctr;

	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	return (size_t)4 << (ctr >> 16 & 15);
}

static int way_here(void)
{
	return bmm_host_has(BMM_CPU_DCPOP) ? 0 : -BMM_EOPNOTSUPP;
}

/* DC CVAP, to the point of persistence; assemblers before Armv8.2 lack it. */
static void write_back(const char *line, int way)
{
	(void)way;
	__asm__ volatile("sys #3, c7, c12, #1, %0" ::"r"(line) : "memory");
}
#else
#define FENCE ""

static size_t line_bytes(void)
{
	return 64;
}

static int way_here(void)
{
	return -BMM_EOPNOTSUPP;
}

static void write_back(const char *line, int way)
{
	(void)line, (void)way;
}
#endif

/**
 * bmm_persist() - write to persistent memory what was written to a range
 * @addr: any alignment; mapped with MAP_SYNC, or from a device (devdax):
 *        anything else needs msync()
 * @len:  bytes; 0 only waits for streaming stores
 *
 * Writes every cache line of the range back and waits, for streaming stores to
 * it too: when it has returned, earlier stores of this thread to the range
 * survive a loss of power. For what bmm_copy_streaming() and its like wrote as
 * well as for ordinary stores. Where the platform writes its caches back on a
 * loss of power (eADR), it is merely not needed.
 *
 * By CLWB, else CLFLUSHOPT, else CLFLUSH on x86-64, by DC CVAP on arm64. Fails
 * on an arm64 CPU without it (before Armv8.2) and on other architectures.
 *
 * Return: 0, or -BMM_EOPNOTSUPP if this CPU cannot (nothing is promised).
 */
int bmm_persist(const void *addr, size_t len)
{
	size_t line = line_bytes();
	const char *p = (const char *)((uintptr_t)addr & -line);
	int way = way_here();

	if (way < 0)
		return way;
	for (; len && p < (const char *)addr + len; p += line)
		write_back(p, way);
	__asm__ volatile(FENCE ::: "memory");
	return 0;
}
