// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CLZERO (AMD, from Zen on): zeroes the line that RAX points into, without
 * reading it, in memory and not in the cache. 64 bytes on every CPU that has
 * it. Weakly ordered like non-temporal stores.
 */
#include "../lines.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_CLZERO);
}

static void clear_lines(char *line, size_t len)
{
	for (; len; len -= BMM_LINE, line += BMM_LINE)
		__asm__ volatile("clzero" : : "a"(line) : "memory");
}

BMM_CLEAR_OF(clear_streaming, clear_lines)

const struct bmm_backend bmm_clzero[] = {
	{ .name = "clzero",
	  .supported = supported,
	  .clear_streaming = clear_streaming },
	{ 0 },
};
