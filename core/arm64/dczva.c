// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DC ZVA zeroes the naturally aligned block that an address points into,
 * without reading it. DCZID_EL0 gives the block size, 4 to 2048 bytes, usually
 * 64. It faults on device memory: normal memory only. Ordered like ordinary
 * stores.
 *
 * Whether the block stays in the cache is up to the CPU, and for long extents
 * it often does not: a candidate for both ways of clearing.
 */
#include "../lines.h"

static bool supported(void)
{
	return bmm_host_zva_block();
}

/*
 * The size is read once: were a CPU to answer otherwise, where the caller may
 * have migrated to, the loop would miss the end of the extent.
 */
static void clear(void *dst, size_t len)
{
	size_t size = bmm_host_zva_block();
	size_t head = extent_head(dst, len, size);
	char *p = dst;

	clear_edge(p, head);
	for (p += head, len -= head; len && len >= size; len -= size, p += size)
		__asm__ volatile("dc zva, %0" : : "r"(p) : "memory");
	clear_edge(p, len);
}

const struct bmm_backend bmm_dczva[] = {
	{ .name = "dczva",
	  .supported = supported,
	  .clear = clear,
	  .clear_streaming = clear },
	{ 0 },
};
