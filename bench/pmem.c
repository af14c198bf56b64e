// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The peer libpmem2: its copy and fill that bypass the cache, drained once per
 * extent, as the core's are.
 *
 * The library decides by the granularity of a mapping what it has to do. Page
 * granularity, which it finds for ordinary memory, means memcpy() and msync();
 * told that a power failure would lose only the cache's contents, it uses
 * non-temporal stores, as on persistent memory without eADR.
 */
#include "bench.h"

#ifdef BENCH_LIBPMEM2
#include <libpmem2.h>

#define FLAGS (PMEM2_F_MEM_NONTEMPORAL | PMEM2_F_MEM_NODRAIN)

static pmem2_memset_fn fill;
static pmem2_memcpy_fn copy;
static pmem2_drain_fn drain;

/**
 * pmem_init() - register the memory to write with libpmem2
 * @buffer: the memory
 *
 * Return: whether pmem_clear() and pmem_copy() can be used.
 */
bool pmem_init(const struct buffer *buffer)
{
	struct pmem2_source *source;
	struct pmem2_map *map;

	if (pmem2_source_from_anon(&source, buffer->bytes) ||
	    pmem2_map_from_existing(&map, source, buffer->base, buffer->bytes,
				    PMEM2_GRANULARITY_CACHE_LINE))
		return false;
	fill = pmem2_get_memset_fn(map);
	copy = pmem2_get_memcpy_fn(map);
	drain = pmem2_get_drain_fn(map);
	return true;
}

void pmem_clear(void *dst, const void *src, size_t len)
{
	fill(dst, 0, len, FLAGS);
	drain();
}

void pmem_copy(void *dst, const void *src, size_t len)
{
	copy(dst, src, len, FLAGS);
	drain();
}
#else
bool pmem_init(const struct buffer *buffer)
{
	return false;
}

void pmem_clear(void *dst, const void *src, size_t len)
{
}

void pmem_copy(void *dst, const void *src, size_t len)
{
}
#endif
