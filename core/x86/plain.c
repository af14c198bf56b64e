// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Ordinary stores, which leave the lines in the cache. */
#include "../lines.h"

static inline void clear_line(char *p)
{
	bmm_word *word = (bmm_word *)p;

#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i++)
		__asm__ volatile("movq %1, %0" : "=m"(word[i]) : "r"(0UL));
}

static inline void copy_line(char *p, const char *s)
{
	bmm_word *to = (bmm_word *)p;
	uint64_t word;

#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i++) {
		bmm_memcpy(&word, s + 8 * i, 8);
		__asm__ volatile("movq %1, %0" : "=m"(to[i]) : "r"(word));
	}
}

static void clear_lines(char *p, size_t len)
{
	for (; len; len -= 64, p += 64)
		clear_line(p);
}

static void copy_lines(char *p, const char *s, size_t len)
{
	for (; len; len -= 64, p += 64, s += 64)
		copy_line(p, s);
}

BMM_CLEAR_OF(clear, clear_lines)

static void copy(void *dst, const void *src, size_t len)
{
	copy_extent(dst, src, len, copy_lines, copy_edge);
}

const struct bmm_backend bmm_plain[] = {
	{ .name = "plain", .clear = clear, .copy = BMM_COPY_FN(copy) },
	{ 0 },
};
