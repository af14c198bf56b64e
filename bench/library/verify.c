// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Not timed: does a variant write what it should, everywhere, and nothing else?
 * Every byte is checked.
 */
#include "bench.h"

static bool records_right(const char *p, const char *end)
{
	const struct bmm_image *image = pages_image();

	while (p < end && !memcmp(p, image->word, image->size))
		p += image->size;
	return p == end;
}

static bool right(const struct variant *v, const char *dst, const char *src,
		  size_t len)
{
	switch (v->op) {
	case BMM_STAMP:
		return records_right(dst, dst + len);
	case BMM_COPY:
	case BMM_COPY_STREAMING:
		return !memcmp(dst, src, len);
	default:
		return bytes_are(dst, len, 0);
	}
}

/* Misaligned operations must not change either end of the extent. */
static bool extent_right(const struct variant *v, const char *p)
{
	const char *dst = p + SHIFT_TO, *src = p + v->source + SHIFT_FROM;
	size_t len = v->extent - SHIFT_CUT;

	if (!v->shifted)
		return right(v, p, p + v->source, v->extent);
	return bytes_are(p, SHIFT_TO, POISON) && right(v, dst, src, len) &&
	       bytes_are(dst + len, SHIFT_CUT - SHIFT_TO, POISON);
}

static bool extents_right(const struct variant *v, const char *base)
{
	const char *p, *end = base + v->bytes;

	for (p = base; p < end; p += v->extent)
		if (!extent_right(v, p))
			return false;
	return true;
}

/*
 * Runs a variant once over poisoned memory. Right is whether all that one
 * sample writes is, and the source, if any, and the guard bytes on each side
 * are unchanged.
 */
bool verify(const struct variant *v, const struct buffer *buffer)
{
	char *base = buffer->base;
	bool intact;

	memset(base - GUARD, POISON, v->bytes + 2 * GUARD);
	walk(v, base);
	intact = buffer_source_right(buffer, v->bytes);
	if (!intact)
		buffer_fill_source(buffer);
	return intact && bytes_are(base - GUARD, GUARD, POISON) &&
	       bytes_are(base + v->bytes, GUARD, POISON) &&
	       extents_right(v, base);
}
