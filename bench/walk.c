// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What one sample does: extent by extent, by one thread or by several. */
#include "bench.h"

static void write_extent(const struct variant *v, char *dst, const char *src,
			 size_t len)
{
	if (v->method)
		v->method(dst, src, len);
	else if (v->limit)
		limit_write(v, dst, src, len);
	else
		ours_write(v, dst, src, len);
}

/**
 * walk_range() - do the job of a variant on a range, in this thread
 * @v:     the variant
 * @base:  first byte
 * @bytes: how many; the last extent may be partial
 */
void walk_range(const struct variant *v, char *base, size_t bytes)
{
	size_t to = v->shifted ? SHIFT_TO : 0, now;
	size_t from = v->source + (v->shifted ? SHIFT_FROM : 0);
	size_t cut = v->shifted ? SHIFT_CUT : 0;

	for (; bytes; bytes -= now, base += now) {
		now = bytes < v->extent ? bytes : v->extent;
		write_extent(v, base + to, base + from, now - cut);
		use_extent(v->use, base, now);
	}
}

/**
 * walk() - do the job of a variant once
 * @v:    the variant
 * @base: the first of v->bytes
 */
void walk(const struct variant *v, char *base)
{
	size_t i;

	for (i = 0; i < v->times; i++)
		if (v->threads > 1)
			threads_run(v, base);
		else
			walk_range(v, base, v->bytes);
}
