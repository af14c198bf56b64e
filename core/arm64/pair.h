/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stamping, copying and clearing by stores of register pairs, with the
 * instruction as the only difference between backends: a file that includes
 * this has defined BMM_PAIR as "stp" or "stnp".
 *
 * The stores are written as assembly so that the compiler can neither turn
 * the loop into a call of memcpy(), nor move the image back to memory. A
 * 64-byte record is eight registers and four stores, one cache line on most
 * CPUs, written whole and in ascending order, so that a write buffer can
 * merge it and needs no read of the line.
 */
#ifndef BMM_ARM64_PAIR_H
#define BMM_ARM64_PAIR_H

#include "../bmm.h"
#include "lines.h"

#ifndef BMM_PAIR
#error "BMM_PAIR is the store: \"stp\" or \"stnp\""
#endif

/* clang-format off: the columns of the macros are their structure */
/* %x: zero may be the zero register. */
#define PAIR_AT(a, b, off) \
	BMM_PAIR " %x[" #a "], %x[" #b "], [%[p], #(" #off ")]\n\t"
#define LINE_AT(off)              \
	PAIR_AT(w0, w1, off + 0)  \
	PAIR_AT(w2, w3, off + 16) \
	PAIR_AT(w4, w5, off + 32) \
	PAIR_AT(w6, w7, off + 48)
#define WORDS(w)                                                            \
	[w0] "rZ"((w)->w0), [w1] "rZ"((w)->w1), [w2] "rZ"((w)->w2),         \
		[w3] "rZ"((w)->w3), [w4] "rZ"((w)->w4), [w5] "rZ"((w)->w5), \
		[w6] "rZ"((w)->w6), [w7] "rZ"((w)->w7)
/* clang-format on */

/* One line in registers. */
struct line {
	uint64_t w0, w1, w2, w3, w4, w5, w6, w7;
};

static inline uint64_t load(const char *p)
{
	uint64_t word;

	bmm_memcpy(&word, p, 8);
	return word;
}

/* Word by word: a copy of the whole would be built on the stack. */
static inline struct line load_line(const char *p)
{
	return (struct line){
		.w0 = load(p),
		.w1 = load(p + 8),
		.w2 = load(p + 16),
		.w3 = load(p + 24),
		.w4 = load(p + 32),
		.w5 = load(p + 40),
		.w6 = load(p + 48),
		.w7 = load(p + 56),
	};
}

static inline void store_line(char *p, const struct line *line)
{
	__asm__ volatile(LINE_AT(0) : : [p] "r"(p), WORDS(line) : "memory");
}

static inline void store_pair(char *p, uint64_t first, uint64_t second)
{
	__asm__ volatile(PAIR_AT(w0, w1, 0)
			 :
			 : [p] "r"(p), [w0] "rZ"(first), [w1] "rZ"(second)
			 : "memory");
}

/*
 * A word alone goes as a pair of halves: there is no non-temporal store of one
 * register.
 */
static inline void store_word(char *p, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	uint32_t first = word >> 32, second = word;
#else
	uint32_t first = word, second = word >> 32;
#endif

	__asm__ volatile(BMM_PAIR " %w1, %w2, [%0]"
			 :
			 : "r"(p), "rZ"(first), "rZ"(second)
			 : "memory");
}

/* 64 bytes, all records equal: the image never leaves registers. */
static void stamp64(char *p, const uint64_t *word, size_t count)
{
	const struct line line = load_line((const char *)word);

	for (; count >= 4; count -= 4, p += 256)
		__asm__ volatile(LINE_AT(0) LINE_AT(64) LINE_AT(128) LINE_AT(192)
				 :
				 : [p] "r"(p), WORDS(&line)
				 : "memory");
	for (; count; count--, p += 64)
		store_line(p, &line);
}

/* 64 bytes, stepping: eight words and their steps all fit the registers. */
static void step64(char *p, const struct bmm_image *image, size_t count)
{
	const struct line step = load_line((const char *)image->step);
	struct line line = load_line((const char *)image->word);

	for (; count; count--, p += 64) {
		store_line(p, &line);
		line.w0 += step.w0;
		line.w1 += step.w1;
		line.w2 += step.w2;
		line.w3 += step.w3;
		line.w4 += step.w4;
		line.w5 += step.w5;
		line.w6 += step.w6;
		line.w7 += step.w7;
	}
}

static inline uint64_t word_at(const struct bmm_image *image, size_t i, size_t n)
{
	return image->word[i] + n * image->step[i];
}

/* Any other size: too many words for the registers. */
static void stamp_any(char *p, const struct bmm_image *image, size_t count)
{
	size_t words = image->size / 8, n, i;

	for (n = 0; n < count; n++) {
		for (i = 0; i + 1 < words; i += 2, p += 16)
			store_pair(p, word_at(image, i, n),
				   word_at(image, i + 1, n));
		if (i < words) {
			store_word(p, word_at(image, i, n));
			p += 8;
		}
	}
}

static void stamp(void *dst, const struct bmm_image *image, size_t count)
{
	if (image->size != 64)
		stamp_any(dst, image, count);
	else if (image->stepping && count > 1)
		step64(dst, image, count);
	else
		stamp64(dst, image->word, count);
}

static inline void copy_line(char *p, const char *s)
{
	const struct line line = load_line(s);

	store_line(p, &line);
}

static inline void copy_pair(char *p, const char *s)
{
	store_pair(p, load(s), load(s + 8));
}

/*
 * The source is read ahead by hand, into the first-level cache alone, for it
 * is not read again: 2 KiB is what a memory of 100 ns delivers in that time at
 * 20 GB/s.
 */
#define READ_AHEAD 2048U

/* No loop below a line: the sizes of descriptors and log entries. */
static void copy_words(char *p, const char *s, size_t len)
{
	for (; len > READ_AHEAD; len -= 64, p += 64, s += 64) {
		__builtin_prefetch(s + READ_AHEAD, 0, 0);
		copy_line(p, s);
	}
	for (; len >= 64; len -= 64, p += 64, s += 64)
		copy_line(p, s);
	if (len & 32) {
		copy_pair(p, s);
		copy_pair(p + 16, s + 16);
	}
	if (len & 16)
		copy_pair(p + (len & 32), s + (len & 32));
	if (len & 8)
		store_word(p + (len & 48), load(s + (len & 48)));
}

/* All by pairs, or all in the ordinary way. */
static void copy(void *dst, const void *src, size_t len)
{
	if (((uintptr_t)dst | len) % 8)
		bmm_memcpy(dst, src, len);
	else
		copy_words(dst, src, len);
}

static void clear_lines(char *p, size_t len, size_t size)
{
	const struct line zero = { 0 };

	for (; len; len -= size, p += size)
		store_line(p, &zero);
}

static void clear(void *dst, size_t len)
{
	bmm_arm64_clear(dst, len, BMM_LINE, clear_lines);
}

#endif
