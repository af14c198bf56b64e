// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory that is written: huge pages if the system gives them, because
 * the kernel's memmap and what it clears are mapped with huge pages too, and
 * faulted in before anything is timed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

/**
 * buffer_get() - memory for a subject
 * @bytes: how much
 *
 * Return: @bytes of present memory, aligned to a huge page; NULL if there is
 * not enough. Lives as long as the process.
 */
void *buffer_get(size_t bytes)
{
	size_t room = bytes + HUGE_SIZE;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	p += -(uintptr_t)p & (HUGE_SIZE - 1);
	madvise(p, bytes, MADV_HUGEPAGE); /* a wish: small pages do as well */
	memset(p, 0xff, bytes);
	return p;
}

/* How much of this process lies in huge pages; 0 if the kernel hides it. */
uint64_t buffer_huge_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib = 0;
	char line[256];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}
