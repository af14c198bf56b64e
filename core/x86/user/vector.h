/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Copy and clear with vector registers, line by line. The including file has
 * defined, as assembly:
 *
 *	VECTOR_LOAD         loads the line at %[s] into registers
 *	VECTOR_ZERO         zeroes the same registers
 *	VECTOR_STORE        stores them to the line at %[p], ordinary stores
 *	VECTOR_STREAM       the same with non-temporal stores
 *
 * The source may have any alignment. The asm names no vector register as
 * clobbered; in the x86-64 ABI all of them are caller-saved.
 */
#ifndef BMM_X86_USER_VECTOR_H
#define BMM_X86_USER_VECTOR_H

#include "../../lines.h"
#include "../record.h"

#define COPY_LINES(name, store)                                            \
	static void name(char *p, const char *s, size_t len)               \
	{                                                                  \
		for (; len; len -= BMM_LINE, p += BMM_LINE, s += BMM_LINE) \
			__asm__ volatile(VECTOR_LOAD store                 \
					 :                                 \
					 : [p] "r"(p), [s] "r"(s)          \
					 : "memory");                      \
		__asm__ volatile("vzeroupper");                            \
	}

#define CLEAR_LINES(name, store)                                           \
	static void name(char *p, size_t len)                              \
	{                                                                  \
		__asm__ volatile(VECTOR_ZERO ::);                          \
		for (; len; len -= BMM_LINE, p += BMM_LINE)                \
			__asm__ volatile(store : : [p] "r"(p) : "memory"); \
		__asm__ volatile("vzeroupper");                            \
	}

COPY_LINES(copy_lines, VECTOR_STORE)
COPY_LINES(stream_lines, VECTOR_STREAM)
CLEAR_LINES(clear_lines, VECTOR_STORE)
CLEAR_LINES(stream_zero, VECTOR_STREAM)

static void copy(void *dst, const void *src, size_t len)
{
	copy_extent(dst, src, len, copy_lines, copy_edge);
}

static void copy_streaming(void *dst, const void *src, size_t len)
{
	if (((uintptr_t)dst | len) % 8)
		copy_extent(dst, src, len, stream_lines, copy_edge);
	else
		copy_extent(dst, src, len, stream_lines, bmm_x86_stream_words);
}

static void clear(void *dst, size_t len)
{
	clear_extent(dst, len, BMM_LINE, clear_lines);
}

static void clear_streaming(void *dst, size_t len)
{
	clear_extent(dst, len, BMM_LINE, stream_zero);
}

#endif
