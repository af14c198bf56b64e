/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clearing by whole lines, or by whole blocks of DC ZVA. The parts of a line
 * at both ends of an extent are written by ordinary stores and belong to no
 * line that is written any other way.
 */
#ifndef BMM_ARM64_LINES_H
#define BMM_ARM64_LINES_H

#include "../bmm.h"

#define BMM_LINE 64U

typedef void bmm_clear_lines(char *line, size_t len, size_t size);

/* A call, so that no ordinary store stands in a streaming function. */
static __attribute__((__noinline__)) void clear_edge(char *p, size_t len)
{
	if (len)
		bmm_memset(p, 0, len);
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

/*
 * Arm orders no store before a later one by itself, ordinary ones included:
 * what is published after this is seen after what was written before it.
 */
static inline void bmm_arm64_drain(void)
{
	__asm__ volatile("dmb ishst" : : : "memory");
}

#endif
