/* SPDX-License-Identifier: GPL-2.0-only */
/* Words to write to memory, and to check when it is read again. */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>

/* A word that differs for every index and every seed. */
static inline uint64_t word_at(uint64_t seed, uint64_t index)
{
	return (index + 1) * 0x9e3779b97f4a7c15UL ^ seed << 56;
}

static inline void store(uint64_t *to, uint64_t words, uint64_t seed,
			 uint64_t first)
{
	for (uint64_t i = 0; i < words; i++)
		to[i] = word_at(seed, first + i);
}

static inline uint64_t differing(const uint64_t *in, uint64_t words,
				 uint64_t seed, uint64_t first)
{
	uint64_t bad = 0;

	for (uint64_t i = 0; i < words; i++)
		bad += in[i] != word_at(seed, first + i);
	return bad;
}

#endif
