// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Peers that clear and copy. */
#include "bench.h"

/*
 * The loops that a user would write, over whole words. A compiler that
 * recognised them would call memset() and memcpy(), which are peers of their
 * own: the stored value is hidden from it.
 */
void plain_clear(void *dst, const void *src, size_t len)
{
	bmm_word *to = dst, *end = to + len / 8;
	uint64_t zero = 0;

	__asm__ volatile("" : "+r"(zero));
	for (; to < end; to++)
		*to = zero;
}

void plain_copy(void *dst, const void *src, size_t len)
{
	const bmm_word *from = src;
	bmm_word *to = dst, *end = to + len / 8;
	uint64_t word;

	for (; to < end; to++, from++) {
		word = *from;
		__asm__("" : "+r"(word));
		*to = word;
	}
}

/*
 * libpmem2: its copy and fill that bypass the cache, drained once per
 * extent, as the core's are.
 *
 * The library decides by the granularity of a mapping what it has to do. Page
 * granularity, which it finds for ordinary memory, means memcpy() and msync();
 * told that a power failure would lose only the cache's contents, it uses
 * non-temporal stores, as on persistent memory without eADR.
 */

#ifdef BENCH_LIBPMEM2
#include <libpmem2.h>

#define FLAGS (PMEM2_F_MEM_NONTEMPORAL | PMEM2_F_MEM_NODRAIN)

static pmem2_memset_fn fill;
static pmem2_memcpy_fn copy;
static pmem2_drain_fn drain;

/* Registers the memory to write; false: there is no libpmem2 to use. */
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
#endif
