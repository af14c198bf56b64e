// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Filling with a pattern: a few repetitions are made, then copied. */
#include "lines.h"

/* What is copied from stays in the first-level cache, of 32 KiB or more. */
#define BLOCK  4096U
#define CACHED (4 * BLOCK)

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * A pattern of up to 8 bytes: whole repetitions of it, by words that overlap.
 * Doubling would wait for what it has just stored. Returns the bytes done.
 */
static size_t repeat_word(char *to, const char *pattern, size_t size, size_t len)
{
	char word[8];
	size_t i, from = 0, done;

	for (i = 0; i < 8; i++) {
		word[i] = pattern[from++];
		if (from == size)
			from = 0;
	}
	for (done = 0; done < BMM_LINE; done += 8 - from) {
		if (len - done < 8) {
			bmm_memcpy(to + done, word, len - done);
			return len;
		}
		bmm_memcpy(to + done, word, 8);
	}
	return done;
}

static void repeat(char *to, const char *pattern, size_t size, size_t len)
{
	size_t done, n;

	if (size <= 8) {
		done = repeat_word(to, pattern, size, len);
	} else {
		done = least(size, len);
		bmm_memcpy(to, pattern, done);
	}
	for (; done < len; done += n) {
		n = least(done, len - done);
		bmm_memcpy(to + done, to, n);
	}
}

/**
 * bmm_fill() - repeat a pattern in memory that is not read soon
 * @dst:     any alignment
 * @pattern: @size bytes, the first of which goes to @dst; must not overlap it
 * @size:    bytes of the pattern, at least 1
 * @len:     bytes to write; the last pattern may be cut; 0 is a no-op
 *
 * Bypasses the cache as bmm_copy_streaming() does; less than two cache lines
 * are written by ordinary stores. Weakly ordered until bmm_drain().
 *
 * Return: 0, or -BMM_EINVAL for a @size of 0 (nothing is written).
 */
int bmm_fill(void *dst, const void *pattern, size_t size, size_t len)
{
	char block[BLOCK + BMM_LINE] __attribute__((__aligned__(BMM_LINE)));
	size_t step = size, period = size, at = 0, rest, n;
	const char *from = pattern;
	char *p = dst;

	if (!size)
		return -BMM_EINVAL;
	if (len < 2 * BMM_LINE) { /* one whole line at most */
		repeat(p, pattern, size, len);
		return 0;
	}
	if (size <= BLOCK / 8) {
		/* Lines come from lines if whole patterns fill some. */
		while (step % BMM_LINE && step <= BLOCK / 8)
			step *= 2;
		period = least(BLOCK, len);
		from = block + (uintptr_t)dst % BMM_LINE;
		repeat((char *)from, pattern, size, period);
	}
	for (; len; len -= n, p += n, at = (at + n) % step) {
		n = rest = least(period - at, len);
		if (n < len)
			n -= least(n, (uintptr_t)(p + n) % BMM_LINE);
		if (n) {
			bmm_copy_streaming(p, from + at, n);
			continue;
		}
		/* The pattern ends within a line, which is made whole. */
		n = least(BMM_LINE - (uintptr_t)p % BMM_LINE, len);
		bmm_memcpy(block, from + at, rest);
		bmm_memcpy(block + rest, from, n - rest);
		bmm_copy_streaming(p, block, n);
	}
	return 0;
}

/**
 * bmm_fill_cached() - repeat a pattern in memory that is used right away
 * @dst:     any alignment
 * @pattern: @size bytes, the first of which goes to @dst; must not overlap it
 * @size:    bytes of the pattern, at least 1
 * @len:     bytes to write; the last pattern may be cut; 0 is a no-op
 *
 * Leaves @dst in the cache as far as it fits. Ordinary ordering.
 *
 * Return: 0, or -BMM_EINVAL for a @size of 0 (nothing is written).
 */
int bmm_fill_cached(void *dst, const void *pattern, size_t size, size_t len)
{
	size_t chunk = size, done, n;
	char *p = dst;

	if (!size)
		return -BMM_EINVAL;
	while (chunk < BLOCK)
		chunk *= 2;
	chunk = least(chunk, len);
	repeat(p, pattern, size, chunk);
	for (done = chunk; done < len; done += n) {
		n = least(chunk, len - done);
		bmm_copy(p + done, p, n);
		if (chunk < CACHED)
			chunk *= 2;
	}
	return 0;
}
