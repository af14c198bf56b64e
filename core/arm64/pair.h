/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Copy and clear with stores of register pairs. Backends differ only in the
 * instruction: define BMM_PAIR as "stp" or "stnp" before including this.
 *
 * The stores are in assembly so that the compiler can neither turn the loop
 * into a call of memcpy() nor spill the image to memory. A 64-byte record is
 * eight registers and four stores, one cache line on most CPUs, written whole
 * and in ascending order, so that a write buffer can merge it without reading
 * the line.
 */
#ifndef BMM_ARM64_PAIR_H
#define BMM_ARM64_PAIR_H

#include "../lines.h"

#ifndef BMM_PAIR
#error "BMM_PAIR is the store: \"stp\" or \"stnp\""
#endif

/* clang-format off */
/* "rZ" with %x: zero goes out as xzr. */
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

/* Word by word: a copy of the whole struct would be built on the stack. */
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

/*
 * A single word is stored as a pair of halves: there is no non-temporal store
 * of one register.
 */
static inline void store_word(char *p, uint64_t word)
{
	uint32_t half[2];

	bmm_memcpy(half, &word, 8);
	__asm__ volatile(BMM_PAIR " %w1, %w2, [%0]"
			 :
			 : "r"(p), "rZ"(half[0]), "rZ"(half[1])
			 : "memory");
}

static inline void copy_line(char *p, const char *s)
{
	const struct line line = load_line(s);

	store_line(p, &line);
}

static void copy_lines(char *p, const char *s, size_t len)
{
	for (; len; len -= BMM_LINE, p += BMM_LINE, s += BMM_LINE)
		copy_line(p, s);
}

static void copy_words(char *p, const char *s, size_t len)
{
	for (; len; len -= 8, p += 8, s += 8)
		store_word(p, load(s));
}

static void copy(void *dst, const void *src, size_t len)
{
	if (((uintptr_t)dst | len) % 8)
		copy_extent(dst, src, len, copy_lines, copy_edge);
	else
		copy_extent(dst, src, len, copy_lines, copy_words);
}

static void clear_lines(char *p, size_t len)
{
	const struct line zero = { 0 };

	for (; len; len -= BMM_LINE, p += BMM_LINE)
		store_line(p, &zero);
}

BMM_CLEAR_OF(clear, clear_lines)

#endif
