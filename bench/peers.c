// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The loops that a user would write, over whole words. A compiler that
 * recognised them would call memset() and memcpy(), which are peers of their
 * own: the stored value is hidden from it.
 */
#include "bench.h"

void plain_clear(void *dst, const void *src, size_t len)
{
	bmm_word *to = dst, *end = to + len / 8;
	uint64_t zero = 0;

	__asm__ volatile("" : "+r"(zero));
	for (; to < end; to++)
		*to = zero;
}

void plain_copy(void *dst, const void *src, size_t len)
{
	const bmm_word *from = src;
	bmm_word *to = dst, *end = to + len / 8;
	uint64_t word;

	for (; to < end; to++, from++) {
		word = *from;
		__asm__("" : "+r"(word));
		*to = word;
	}
}
