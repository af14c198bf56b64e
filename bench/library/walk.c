// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What one sample does: extent by extent, by one thread or by several; by a
 * peer, a limit, a named backend of the core, or the core as a program calls it.
 */
#include "bench.h"

/* bmm_clear_streaming() has drained, a backend called directly has not. */
static bool needs_drain(const struct variant *v)
{
	return bmm_op_streams(v->op) &&
	       (v->backend || v->op != BMM_CLEAR_STREAMING);
}

/* An operation of the core on one extent, drained. */
static void write_by_core(const struct variant *v, void *dst, const void *src,
			  size_t len)
{
	struct bmm_job job = { .op = v->op,
			       .dst = dst,
			       .src = src,
			       .image = pages_image(),
			       .len = len };

	if (v->backend)
		bmm_job_do(&job, v->backend);
	else
		job_call(&job);
	if (needs_drain(v))
		bmm_drain();
}

static void write_extent(const struct variant *v, char *dst, const char *src,
			 size_t len)
{
	if (v->method)
		v->method(dst, src, len);
	else if (v->limit)
		limit_write(v->limit, v->op, dst, src, len);
	else
		write_by_core(v, dst, src, len);
}

/* Does the job of a variant on a range; the last extent may be partial. */
void walk_range(const struct variant *v, char *base, size_t bytes)
{
	size_t to = v->shifted ? SHIFT_TO : 0, len;
	size_t from = v->source + (v->shifted ? SHIFT_FROM : 0);
	size_t cut = v->shifted ? SHIFT_CUT : 0;

	for (; bytes; bytes -= len, base += len) {
		len = bytes < v->extent ? bytes : v->extent;
		write_extent(v, base + to, base + from, len - cut);
		use_extent(v->use, base, len);
	}
}

/* Does the job of a variant once, from the first byte of its sample. */
void walk(const struct variant *v, char *base)
{
	size_t i;

	for (i = 0; i < v->times; i++)
		if (v->threads > 1)
			threads_run(v, base);
		else
			walk_range(v, base, v->bytes);
}
