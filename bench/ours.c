// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Operations of the core: by a named backend, or as a program calls them. */
#include "bench.h"

static void call(const struct bmm_job *job)
{
	switch (job->op) {
	case BMM_STAMP:
		bmm_stamp(job->dst, job->image, job->len / job->image->size);
		break;
	case BMM_COPY:
		bmm_copy(job->dst, job->src, job->len);
		break;
	case BMM_COPY_STREAMING:
		bmm_copy_streaming(job->dst, job->src, job->len);
		break;
	case BMM_CLEAR:
		bmm_clear(job->dst, job->len);
		break;
	default:
		bmm_clear_streaming(job->dst, job->len);
		break;
	}
}

/* bmm_clear_streaming() has drained, a backend called directly has not. */
static bool to_drain(const struct variant *v)
{
	return bmm_op_streams(v->op) &&
	       (v->backend || v->op != BMM_CLEAR_STREAMING);
}

/**
 * ours_write() - an operation of the core on one extent, drained
 * @v:   the operation, and the backend
 * @dst: the extent
 * @src: source of a copy
 * @len: bytes; struct pages are stamped section by section, as the module does
 */
void ours_write(const struct variant *v, void *dst, const void *src, size_t len)
{
	struct bmm_job job = { .op = v->op,
			       .dst = dst,
			       .src = src,
			       .image = pages_image(),
			       .len = len };

	if (v->op == BMM_STAMP && v->len < len)
		job.len = v->len;
	for (; len; len -= job.len, job.dst = (char *)job.dst + job.len) {
		if (job.len > len)
			job.len = len;
		if (v->backend)
			bmm_job_do(&job, v->backend);
		else
			call(&job);
	}
	if (to_drain(v))
		bmm_drain();
}
