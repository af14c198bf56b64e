// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MOVDIR64B: copies 64 bytes from anywhere in memory to an aligned line, in one
 * weakly ordered store that bypasses the cache and has no write-combining
 * buffer to fill; needs only general registers. Records that step stay with
 * MOVNTI: each would first have to be written to memory and read back through
 * store forwarding.
 */
#include "record.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_MOVDIR64B);
}

static inline void store_line(char *line, const void *src)
{
	__asm__ volatile("movdir64b (%1), %0"
			 :
			 : "r"(line), "r"(src)
			 : "memory");
}

static void copy_lines(char *p, const char *s, size_t len)
{
	for (; len; len -= 64, p += 64, s += 64)
		store_line(p, s);
}

BMM_COPY_OF(copy_streaming, bmm_x86_stream_extent, copy_lines)

static void clear_lines(char *line, size_t len)
{
	static const uint64_t zero[8] __attribute__((__aligned__(64)));

	for (; len; len -= 64, line += 64)
		store_line(line, zero);
}

BMM_CLEAR_OF(clear_streaming, clear_lines)

static void stamp(void *dst, const struct bmm_image *image, size_t count)
{
	char *p = dst;

	if (image->size != 64 || image->stepping || (uintptr_t)dst % BMM_LINE) {
		bmm_x86_stamp(dst, image, count);
		return;
	}
	for (; count; count--, p += 64)
		store_line(p, image->word);
}

const struct bmm_backend bmm_movdir64b[] = {
	{ .name = "movdir64b",
	  .supported = supported,
	  .stamp = stamp,
	  .copy_streaming = BMM_COPY_FN(copy_streaming),
	  .clear_streaming = clear_streaming },
	{ 0 },
};
