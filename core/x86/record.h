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

#include "../bmm.h"

/* clang-format off: the columns of the macros are their structure */
#define BMM_STORE8(insn, off)                                          \
	insn " %[w0], " #off "+0(%[p])\n\t" insn " %[w1], " #off       \
	     "+8(%[p])\n\t" insn " %[w2], " #off "+16(%[p])\n\t" insn  \
	     " %[w3], " #off "+24(%[p])\n\t" insn " %[w4], " #off      \
	     "+32(%[p])\n\t" insn " %[w5], " #off "+40(%[p])\n\t" insn \
	     " %[w6], " #off "+48(%[p])\n\t" insn " %[w7], " #off      \
	     "+56(%[p])\n\t"

#define BMM_WORDS8(w)                                                 \
	[w0] "r"((w)[0]), [w1] "r"((w)[1]), [w2] "r"((w)[2]),         \
		[w3] "r"((w)[3]), [w4] "r"((w)[4]), [w5] "r"((w)[5]), \
		[w6] "r"((w)[6]), [w7] "r"((w)[7])
/* clang-format on */

static inline void bmm_x86_stream(void *p, uint64_t word)
{
	__asm__ volatile("movnti %1, %0" : "=m"(*(bmm_word *)p) : "r"(word));
}

/* Whole aligned words only; callers write other edges by ordinary stores. */
static inline void bmm_x86_stream_words(char *p, const char *s, size_t len)
{
	uint64_t word;

	for (; len; len -= 8, p += 8, s += 8) {
		bmm_memcpy(&word, s, 8);
		bmm_x86_stream(p, word);
	}
}

/* 64 bytes, all records equal: the image never leaves registers. */
static inline void bmm_x86_stamp64(char *p, const uint64_t *w, size_t count)
{
	for (; count >= 4; count -= 4, p += 256)
		__asm__ volatile(BMM_STORE8("movnti", 0) BMM_STORE8("movnti", 64)
					 BMM_STORE8("movnti", 128)
						 BMM_STORE8("movnti", 192)
				 :
				 : [p] "r"(p), BMM_WORDS8(w)
				 : "memory");
	for (; count; count--, p += 64)
		__asm__ volatile(BMM_STORE8("movnti", 0)
				 :
				 : [p] "r"(p), BMM_WORDS8(w)
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
		__asm__ volatile(BMM_STORE8("movnti", 0)
				 :
				 : [p] "r"(p), [w0] "r"(w0), [w1] "r"(w1),
				   [w2] "r"(w2), [w3] "r"(w3), [w4] "r"(w4),
				   [w5] "r"(w5), [w6] "r"(w6), [w7] "r"(w7)
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
