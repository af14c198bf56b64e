// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ordinary stores: what is left where non-temporal stores are slow, and the
 * peer that shows what going around the cache is worth.
 */
#include "../backends.h"
#include "lines.h"
#include "record.h"

static bool supported(void)
{
	return true;
}

BMM_X86_STAMP("movq")

static void clear_lines(char *line, size_t len)
{
	const uint64_t zero[8] = { 0 };

	for (; len; len -= BMM_LINE, line += BMM_LINE)
		__asm__ volatile(BMM_STORE8("movq", 0)
				 :
				 : [p] "r"(line), BMM_WORDS8(zero)
				 : "memory");
}

static void clear(void *dst, size_t len)
{
	bmm_x86_clear(dst, len, clear_lines);
}

const struct bmm_backend bmm_x86_plain = {
	.name = "plain",
	.flags = BMM_CACHED,
	.supported = supported,
	.stamp = stamp,
	.clear = clear,
	.clear_streaming = clear,
	.drain = bmm_no_drain,
};
