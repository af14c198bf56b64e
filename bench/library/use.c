// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the next user does with memory that was just cleared. General
 * registers only; accesses are independent, so that the CPU overlaps them.
 */
#include "common.h"

#define LINE_WORDS (LINE / 8)
#define WRITTEN	   0x5a0f1e2d3c4b6978ULL

static void read_lines(const bmm_word *word, size_t lines)
{
	for (; lines; lines--, word += LINE_WORDS)
		(void)*(const volatile bmm_word *)word;
}

static void write_words(bmm_word *word, size_t words)
{
	for (; words; words--)
		*(volatile bmm_word *)word++ = WRITTEN;
}

/*
 * A permutation of the numbers below a power of two: each step is invertible.
 * It is calculated, because a table would occupy part of the cache.
 */
static void read_random(const bmm_word *word, size_t lines)
{
	unsigned int half = (unsigned int)__builtin_ctzll(lines) / 2 + 1;
	uint64_t mask = lines - 1, i, x;

	for (i = 0; i < lines; i++) {
		x = (i * 0x9e3779b97f4a7c15ULL) & mask;
		x ^= x >> half;
		x = (x * 0xbf58476d1ce4e5b9ULL) & mask;
		x ^= x >> half;
		(void)*(const volatile bmm_word *)(word + x * LINE_WORDS);
	}
}

/* Uses memory that is aligned to a line: a power of two, at least a line. */
void use_extent(enum use use, void *base, size_t len)
{
	switch (use) {
	case USE_READ:
		read_lines(base, len / LINE);
		break;
	case USE_WRITE:
		write_words(base, len / 8);
		break;
	case USE_RANDOM:
		read_random(base, len / LINE);
		break;
	default:
		break;
	}
}
