// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The loops a user would write, for whole words. A compiler that recognises
 * them would call memset() and memcpy(), which are peers of their own: it is
 * kept from knowing what is stored.
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
