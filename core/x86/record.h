/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Non-temporal stores from general registers: stamping, and single words.
 *
 * In assembly, so that the compiler can neither turn a loop into a call of
 * memcpy(), nor use vector registers, nor spill the image to memory. Eight
 * words, the destination and a counter fit the general registers; a 64-byte
 * record is one cache line, written whole and in ascending order, which suits
 * write-combining buffers.
 */
#ifndef BMM_X86_RECORD_H
#define BMM_X86_RECORD_H

#include "../lines.h"

/* clang-format off */
#define STREAM_WORD(n, off) "movnti %[w" #n "], " #off "+8*" #n "(%[p])\n\t"
#define STREAM_LINE(off)                                        \
	STREAM_WORD(0, off) STREAM_WORD(1, off)                 \
	STREAM_WORD(2, off) STREAM_WORD(3, off)                 \
	STREAM_WORD(4, off) STREAM_WORD(5, off)                 \
	STREAM_WORD(6, off) STREAM_WORD(7, off)
#define WORDS(a, b, c, d, e, f, g, h)                           \
	[w0] "r"(a), [w1] "r"(b), [w2] "r"(c), [w3] "r"(d),     \
	[w4] "r"(e), [w5] "r"(f), [w6] "r"(g), [w7] "r"(h)
#define WORDS_OF(w) WORDS(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
/* clang-format on */

static inline void bmm_x86_stream(void *p, uint64_t word)
{
	__asm__ volatile("movnti %1, %0" : "=m"(*(bmm_word *)p) : "r"(word));
}

static inline void bmm_x86_stream_words(char *p, const char *s, size_t len)
{
	uint64_t word;

	for (; len; len -= 8, p += 8, s += 8) {
		bmm_memcpy(&word, s, 8);
		bmm_x86_stream(p, word);
	}
}

/* The edges, too, are streamed if they are whole words, else stored. */
static inline __attribute__((__always_inline__)) void
bmm_x86_stream_extent(void *dst, const void *src, size_t len,
		      bmm_copy_lines *lines)
{
	if (((uintptr_t)dst | len) % 8)
		copy_extent(dst, src, len, lines, copy_edge);
	else
		copy_extent(dst, src, len, lines, bmm_x86_stream_words);
}

/* 64 bytes, all records equal: the image never leaves registers. */
static inline void bmm_x86_stamp64(char *p, const uint64_t *w, size_t count)
{
	for (; count >= 4; count -= 4, p += 256)
		__asm__ volatile(STREAM_LINE(0) STREAM_LINE(64) STREAM_LINE(128)
					 STREAM_LINE(192)
				 :
				 : [p] "r"(p), WORDS_OF(w)
				 : "memory");
	for (; count; count--, p += 64)
		__asm__ volatile(STREAM_LINE(0)
				 :
				 : [p] "r"(p), WORDS_OF(w)
				 : "memory");
}

/* 64 bytes, stepping: eight adds per record hide behind the stores. */
static inline void bmm_x86_step64(char *p, const struct bmm_image *image,
				  size_t count)
{
	const uint64_t *word = image->word, *step = image->step;
	uint64_t w0 = word[0], w1 = word[1], w2 = word[2], w3 = word[3];
	uint64_t w4 = word[4], w5 = word[5], w6 = word[6], w7 = word[7];

	for (; count; count--, p += 64) {
		__asm__ volatile(STREAM_LINE(0)
				 :
				 : [p] "r"(p),
				   WORDS(w0, w1, w2, w3, w4, w5, w6, w7)
				 : "memory");
		w0 += step[0];
		w1 += step[1];
		w2 += step[2];
		w3 += step[3];
		w4 += step[4];
		w5 += step[5];
		w6 += step[6];
		w7 += step[7];
	}
}

/* Any other size: too many words for the registers. */
static inline void bmm_x86_stamp_any(bmm_word *p, const struct bmm_image *image,
				     size_t count)
{
	size_t words = image->size / 8, n, i;

	for (n = 0; n < count; n++)
		for (i = 0; i < words; i++, p++)
			bmm_x86_stream(p, image->word[i] + n * image->step[i]);
}

static inline void bmm_x86_stamp(void *dst, const struct bmm_image *image,
				 size_t count)
{
	if (image->size != 64)
		bmm_x86_stamp_any(dst, image, count);
	else if (image->stepping && count > 1)
		bmm_x86_step64(dst, image, count);
	else
		bmm_x86_stamp64(dst, image->word, count);
}

#endif
