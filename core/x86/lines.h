/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clearing by whole cache lines. The parts of a line at both ends of an extent
 * are written by ordinary stores and belong to no line that is written any
 * other way: a line in the cache that is also written around it must be evicted
 * in between (CLZERO on a line and then a store to it: 0.2 GB/s on Zen 4).
 */
#ifndef BMM_X86_LINES_H
#define BMM_X86_LINES_H

#include "../bmm.h"

#define BMM_LINE 64U

typedef void bmm_clear_lines(char *line, size_t len);

/* A call, so that no ordinary store stands in a streaming function. */
static __attribute__((__noinline__)) void clear_edge(char *p, size_t len)
{
	if (len)
		bmm_memset(p, 0, len);
}

static inline void bmm_x86_clear(char *p, size_t len, bmm_clear_lines *lines)
{
	size_t head = -(uintptr_t)p % BMM_LINE;
	size_t tail;

	if (head > len)
		head = len;
	tail = (len - head) % BMM_LINE;
	clear_edge(p, head);
	lines(p + head, len - head - tail);
	clear_edge(p + len - tail, tail);
}

#endif
