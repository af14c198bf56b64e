// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Outside the timing: does a variant write what it should, everywhere, and
 * nothing beside it? Every byte is looked at.
 */
#include <string.h>

#include "bench.h"

static bool poisoned(const char *byte)
{
	return (unsigned char)*byte == POISON &&
	       !memcmp(byte, byte + 1, GUARD - 1);
}

/*
 * No two words of a source are alike, and none is like what lies beside it or
 * beside the destination: nothing can stand in for anything else. The pattern
 * is known, so one that writes to its source is found as well.
 */
#define PATTERN 0x9e3779b97f4a7c15ULL
#define BESIDE	0x55

static void fill_source(char *source, size_t bytes)
{
	bmm_word *word = (bmm_word *)source;

	memset(source - GUARD, BESIDE, bytes + 2 * GUARD);
	for (size_t i = 0; i < bytes / 8; i++)
		word[i] = (i + 1) * PATTERN;
}

static bool source_is_whole(const char *source, size_t bytes)
{
	const bmm_word *word = (const bmm_word *)source;

	for (size_t i = 0; i < bytes / 8; i++)
		if (word[i] != (i + 1) * PATTERN)
			return false;
	return true;
}

/**
 * verify() - run a variant once over poisoned memory and look at it
 * @subject: whose variant
 * @variant: which
 * @buffer:  where
 *
 * Return: whether all that one sample writes is right, the source, if there
 * is one, is what it was, and the GUARD bytes on each side too.
 */
bool verify(const struct subject *subject, const struct variant *variant,
	    const struct buffer *buffer)
{
	size_t bytes = variant->units * subject->unit;
	char *base = buffer->base;

	memset(base - GUARD, POISON, bytes + 2 * GUARD);
	if (subject->sourced)
		fill_source(base + buffer->source, bytes);
	variant->run(variant, base, variant->units);
	return poisoned(base - GUARD) && poisoned(base + bytes) &&
	       subject->right(variant, base, variant->units) &&
	       (!subject->sourced ||
		source_is_whole(base + buffer->source, bytes));
}
