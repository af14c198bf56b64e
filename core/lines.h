/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clear and copy by whole cache lines. No line is written both ways: one in the
 * cache that is also written bypassing it must be evicted in between (CLZERO on
 * a line, then a store to it: 0.2 GB/s on Zen 4). So the partial lines that a
 * clear has at both ends of an extent are written by ordinary stores only; a
 * copy says what writes them.
 */
#ifndef BMM_LINES_H
#define BMM_LINES_H

#include "bmm.h"

#define BMM_LINE 64U

typedef void bmm_clear_lines(char *line, size_t len);
typedef void bmm_copy_lines(char *line, const char *src, size_t len);

/* Not inlined, so that streaming functions contain no ordinary store. */
static __attribute__((__noinline__)) void clear_edge(char *p, size_t len)
{
	if (len)
		bmm_memset(p, 0, len);
}

static __attribute__((__noinline__, __unused__)) void
copy_edge(char *p, const char *s, size_t len)
{
	if (len)
		bmm_memcpy(p, s, len);
}

/* Bytes before the first whole line of an extent. */
static inline size_t extent_head(const char *p, size_t len, size_t size)
{
	size_t head = -(uintptr_t)p & (size - 1);

	return head < len ? head : len;
}

/* @size: bytes of a line, or of what is cleared at a time; a power of two */
static inline __attribute__((__always_inline__)) void
clear_extent(char *p, size_t len, size_t size, bmm_clear_lines *lines)
{
	size_t head = extent_head(p, len, size);
	size_t tail = (len - head) & (size - 1);

	clear_edge(p, head);
	lines(p + head, len - head - tail);
	clear_edge(p + len - tail, tail);
}

/* @edge: copies the partial lines at the ends */
static inline __attribute__((__always_inline__)) void
copy_extent(char *p, const char *s, size_t len, bmm_copy_lines *lines,
	    bmm_copy_lines *edge)
{
	size_t head = extent_head(p, len, BMM_LINE);
	size_t tail = (len - head) % BMM_LINE;

	edge(p, s, head);
	lines(p + head, s + head, len - head - tail);
	edge(p + len - tail, s + len - tail, tail);
}

/* Operations of any length and alignment from a loop over whole lines. */
#define BMM_CLEAR_OF(name, lines)                        \
	static void name(void *dst, size_t len)          \
	{                                                \
		clear_extent(dst, len, BMM_LINE, lines); \
	}
#define BMM_COPY_OF(name, extent, lines)                         \
	static void name(void *dst, const void *src, size_t len) \
	{                                                        \
		extent(dst, src, len, lines);                    \
	}

#endif
