// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the subjects that work extent by extent share. */
#include <stdio.h>

#include "bench.h"

/**
 * extent_name() - name of a scenario, such as "clear-2m-then-read"
 * @name:    where to
 * @room:    bytes there
 * @subject: first part
 * @extent:  second part, a power of two
 * @suffix:  the rest, or ""
 */
void extent_name(char *name, size_t room, const char *subject, uint64_t extent,
		 const char *suffix)
{
	unsigned int power = (unsigned int)__builtin_ctzll(extent) / 10;

	snprintf(name, room, "%s-%llu%c%s", subject,
		 (unsigned long long)(extent >> (10 * power)), "bkmgt"[power],
		 suffix);
}

/**
 * extent_sample() - how much one sample goes through
 * @extent: bytes at a time
 * @buffer: where
 *
 * Return: bytes, a multiple of @extent.
 */
size_t extent_sample(size_t extent, const struct buffer *buffer)
{
	size_t bytes = extent > SAMPLE ? extent : SAMPLE;

	return bytes < buffer->bytes ? bytes : buffer->bytes;
}
