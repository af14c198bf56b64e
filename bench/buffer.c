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
 * @buffer:  set to present memory, aligned to a huge page, that lives as long
 *           as the process
 * @bytes:   how much to write
 * @sourced: whether there is to be as much to read
 *
 * A huge page before, between and behind the areas holds the guard bytes.
 *
 * Return: 0, or -1 if there is not enough.
 */
int buffer_get(struct buffer *buffer, size_t bytes, bool sourced)
{
	size_t area = ((bytes + HUGE_SIZE - 1) & -HUGE_SIZE) + HUGE_SIZE;
	size_t present = HUGE_SIZE + area * (sourced ? 2 : 1);
	char *p = mmap(NULL, present + HUGE_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	p += -(uintptr_t)p & (HUGE_SIZE - 1);
	madvise(p, present, MADV_HUGEPAGE); /* a wish: small pages do as well */
	memset(p, POISON, present);
	*buffer = (struct buffer){ .base = p + HUGE_SIZE,
				   .bytes = bytes,
				   .source = sourced ? area : 0 };
	return 0;
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
