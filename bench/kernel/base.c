// SPDX-License-Identifier: GPL-2.0-only
/* What all parts use: errors, memory, random numbers, checksums. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../core/evict.h"
#include "native.h"

static void __attribute__((__noreturn__))
print_exit(int code, const char *format, va_list args)
{
	fflush(stdout);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	_exit(code);
}

/* Prints one line and exits: something is missing, or wrong with the code. */
void fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_exit(ENVIRONMENT, format, args);
}

/* The same of what was asked for. */
void reject(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_exit(USAGE, format, args);
}

/* Zeroed memory for structures that the kernel follows pointers to. */
void *require_memory(size_t bytes)
{
	void *at = calloc(1, bytes);

	if (!at)
		fatal("no memory: %zu bytes", bytes);
	return at;
}

static char *map_region(size_t bytes)
{
	char *at = mmap(NULL, bytes + HUGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		fatal("no memory: %zu bytes: %s", bytes, strerror(errno));
	at = (char *)(((uintptr_t)at + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1));
	madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

#define REGIONS_MAX 16

/*
 * Memory that is measured: on huge pages if possible. The second kernel, which
 * asks for the same in the same order, gets what the first one has: a
 * difference between them is not one between places.
 */
char *map_memory(size_t bytes)
{
	static struct region {
		char *at;
		size_t bytes;
	} regions[REGIONS_MAX];
	static PER_KERNEL size_t region_count;
	struct region *region = &regions[region_count++];

	if (region_count > REGIONS_MAX)
		fatal("too many regions");
	if (region->at && region->bytes != bytes)
		fatal("the two kernels lay out memory differently");
	if (!region->at)
		*region = (struct region){ map_region(bytes), bytes };
	return region->at;
}

static uint64_t random_state = 1;

/* Like the order of rounds, repeatable by the seed. */
uint64_t random_next(void)
{
	return order_random(&random_state);
}

void random_seed(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL | 1;
}

/* Differs if one word differs; @bytes: a multiple of 8. */
uint64_t checksum(const void *at, uint64_t bytes)
{
	const uint64_t odd = 0x9e3779b97f4a7c15ULL, *word = at;
	uint64_t sum = odd;

	for (; bytes; bytes -= sizeof(*word)) {
		sum = (sum ^ *word++) * odd;
		sum ^= sum >> 32;
	}
	return sum;
}

/* Out of all caches, if they could hold a good part of it. */
void evict(const void *at, uint64_t bytes)
{
	if (bytes < 4 * buffer_cache_bytes())
		bmm_evict(at, bytes);
}
