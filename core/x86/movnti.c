// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MOVNTI: non-temporal stores from general registers (SSE2, so every x86-64
 * CPU has it). A full line in the write-combining buffer goes to memory without
 * being read first; that read is the extra cost of an ordinary store.
 *
 * Whether and how a copy gains from prefetching its source differs: NTA 2 KiB
 * ahead is worth a fifth on Zen 3 and costs 2.6 times on Granite Rapids, where
 * T0 1 KiB gains a tenth; on Zen 5 all are alike. So each is a candidate.
 *
 * From a source at another offset in its line, long copies fall to an eighth of
 * the rate that short ones have (2.8 and 22 GB/s, Zen 4).
 */
#include "record.h"

static inline void copy_line(char *p, const char *s)
{
#pragma GCC unroll 8
	for (size_t i = 0; i < BMM_LINE; i += 8)
		bmm_x86_stream_words(p + i, s + i, 8);
}

static void copy_lines(char *p, const char *s, size_t len)
{
	for (; len; len -= 64, p += 64, s += 64)
		copy_line(p, s);
}

/* Nothing past the end is prefetched: it is somebody else's. */
#define COPY_AHEAD(name, hint, ahead)                                \
	static void name(char *p, const char *s, size_t len)         \
	{                                                            \
		for (; len > (ahead); len -= 64, p += 64, s += 64) { \
			__asm__ volatile("prefetch" hint " %c1(%0)"  \
					 :                           \
					 : "r"(s), "i"(ahead));      \
			copy_line(p, s);                             \
		}                                                    \
		copy_lines(p, s, len);                               \
	}

COPY_AHEAD(copy_lines_t0, "t0", 1024)
COPY_AHEAD(copy_lines_nta, "nta", 2048)

BMM_COPY_OF(copy, bmm_x86_stream_extent, copy_lines)
BMM_COPY_OF(copy_t0, bmm_x86_stream_extent, copy_lines_t0)
BMM_COPY_OF(copy_nta, bmm_x86_stream_extent, copy_lines_nta)

static void clear_lines(char *line, size_t len)
{
	const uint64_t zero[8] = { 0 };

	bmm_x86_stamp64(line, zero, len / BMM_LINE);
}

BMM_CLEAR_OF(clear_streaming, clear_lines)

static void stamp(void *dst, const struct bmm_image *image, size_t count)
{
	bmm_x86_stamp(dst, image, count);
}

const struct bmm_backend bmm_movnti[] = {
	{ .name = "movnti",
	  .level = true,
	  .stamp = stamp,
	  .copy_streaming = BMM_COPY_FN(copy),
	  .clear_streaming = clear_streaming },
	{ .name = "movnti-t0",
	  .level = true,
	  .copy_streaming = BMM_COPY_FN(copy_t0) },
	{ .name = "movnti-nta",
	  .level = true,
	  .copy_streaming = BMM_COPY_FN(copy_nta) },
	{ 0 },
};
