/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clear by whole lines or whole DC ZVA blocks, copy by lines. The partial ones
 * that a clear has at both ends of an extent are written by ordinary stores
 * only; a copy says what writes them.
 */
#ifndef BMM_ARM64_LINES_H
#define BMM_ARM64_LINES_H

#include "../bmm.h"

#define BMM_LINE 64U

typedef void bmm_clear_lines(char *line, size_t len, size_t size);
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

/* @size: bytes of a line, a power of two */
static inline void bmm_arm64_clear(char *p, size_t len, size_t size,
				   bmm_clear_lines *lines)
{
	size_t head = -(uintptr_t)p & (size - 1);
	size_t tail;

	if (head > len)
		head = len;
	tail = (len - head) & (size - 1);
	clear_edge(p, head);
	lines(p + head, len - head - tail, size);
	clear_edge(p + len - tail, tail);
}

/* @edge: copies the partial lines at the ends */
static inline void bmm_arm64_copy(char *p, const char *s, size_t len,
				  bmm_copy_lines *lines, bmm_copy_lines *edge)
{
	size_t head = -(uintptr_t)p % BMM_LINE;
	size_t tail;

	if (head > len)
		head = len;
	tail = (len - head) % BMM_LINE;
	edge(p, s, head);
	lines(p + head, s + head, len - head - tail);
	edge(p + len - tail, s + len - tail, tail);
}

#endif
