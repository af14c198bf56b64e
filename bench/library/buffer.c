// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory that is written: in huge pages if available, because the kernel's
 * memmap and what it clears are mapped with huge pages too; faulted in before
 * anything is timed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define CACHES	      "/sys/devices/system/cpu/cpu0/cache/index%u/%s"
#define CACHE_UNKNOWN ((size_t)32 << 20)

/* Reads a size in KiB, or a plain number; 0 if it cannot be read. */
static unsigned long cache_number(unsigned int index, const char *file)
{
	unsigned long value = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), CACHES, index, file);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

/* Bytes of the last-level cache; a guess if the system does not say. */
size_t buffer_cache_bytes(void)
{
	unsigned long level, highest = 0;
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; (level = cache_number(i, "level")); i++) {
		if (level < highest)
			continue;
		highest = level;
		bytes = (size_t)cache_number(i, "size") << 10;
	}
	return bytes ? bytes : CACHE_UNKNOWN;
}

/*
 * Gets memory that lives as long as the process, present and aligned to a huge
 * page; with an equal area to read if @sourced. A huge page before, between and
 * after the areas holds the guard bytes. -1: there is not enough.
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
	madvise(p, present, MADV_HUGEPAGE); /* optional: small pages work too */
	memset(p, POISON, present);
	*buffer = (struct buffer){ .base = p + HUGE_SIZE,
				   .bytes = bytes,
				   .source = sourced ? area : 0 };
	buffer_fill_source(buffer);
	return 0;
}

/*
 * All words of a source differ, also from the guard bytes and the destination,
 * so that wrong bytes cannot pass for right ones. The pattern is known, so that
 * a variant that writes to its source is detected too.
 */
#define PATTERN 0x9e3779b97f4a7c15ULL

/* Fill the source of copies, if there is one. */
void buffer_fill_source(const struct buffer *buffer)
{
	bmm_word *word = (bmm_word *)(buffer->base + buffer->source);
	size_t i;

	if (!buffer->source)
		return;
	memset((char *)word - GUARD, POISON, GUARD);
	for (i = 0; i < buffer->bytes / 8; i++)
		word[i] = (i + 1) * PATTERN;
}

/*
 * Whether nobody has written to the first @bytes of the source, if there is
 * one, and to the guard bytes before it.
 */
bool buffer_source_right(const struct buffer *buffer, size_t bytes)
{
	const bmm_word *word = (bmm_word *)(buffer->base + buffer->source);
	size_t i;

	if (!buffer->source)
		return true;
	if (bytes < buffer->bytes)
		bytes += GUARD;
	for (i = 0; i < GUARD / 8; i++)
		if (~*(word - i - 1))
			return false;
	for (i = 0; i < bytes / 8; i++)
		if (word[i] != (i + 1) * PATTERN)
			return false;
	return true;
}

/* Bytes of this process in huge pages; 0 if the kernel does not tell. */
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
