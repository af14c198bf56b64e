// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of backends, built from the lists in backends.def: one line there
 * for each source file, which defines one backend or several variants.
 */
#include "bmm.h"

#define BMM_BACKENDS(file) bmm_##file,
static const struct bmm_backend *const files[] = {
#include "backends.def"
	NULL,
};
#undef BMM_BACKENDS

/**
 * bmm_backend_at() - a backend by its number
 * @i: in the order of the lists, which is the order of preference; bmm_generic
 *     is the last
 *
 * Return: the backend, or NULL if @i is past the last one.
 */
const struct bmm_backend *bmm_backend_at(size_t i)
{
	const struct bmm_backend *const *file, *backend;

	for (file = files; *file; file++)
		for (backend = *file; backend->name; backend++)
			if (!i--)
				return backend;
	return i ? NULL : &bmm_generic;
}

static bool has_op(const struct bmm_backend *backend, enum bmm_op op)
{
	const bool has[BMM_OPS] = {
		[BMM_STAMP] = backend->stamp,
		[BMM_COPY] = backend->copy,
		[BMM_COPY_STREAMING] = backend->copy_streaming,
		[BMM_CLEAR] = backend->clear,
		[BMM_CLEAR_STREAMING] = backend->clear_streaming,
	};

	return (unsigned int)op < BMM_OPS && has[op];
}

/**
 * bmm_backend_can() - whether a backend can do an operation here
 * @backend: from bmm_backend_at()
 * @op:      the operation
 *
 * Return: true if it has the operation and this CPU supports the backend.
 */
bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op)
{
	return has_op(backend, op) &&
	       (!backend->supported || backend->supported());
}

static bool same_name(const char *backend, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!backend[i] || backend[i] != name[i])
			return false;
	return !backend[len];
}

/**
 * bmm_backend_find() - look a backend up by name
 * @op:   operation to do with it
 * @name: name, not necessarily terminated
 * @len:  its length in bytes
 *
 * Return: the backend, or NULL if none of this name is built in, it lacks the
 * operation, or this CPU does not support it.
 */
const struct bmm_backend *bmm_backend_find(enum bmm_op op, const char *name,
					   size_t len)
{
	const struct bmm_backend *backend;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (same_name(backend->name, name, len))
			return bmm_backend_can(backend, op) ? backend : NULL;
	return NULL;
}

/**
 * bmm_job_do() - do an operation with a backend
 * @job:     the operation
 * @backend: one that can do it; stores are not drained
 */
void bmm_job_do(const struct bmm_job *job, const struct bmm_backend *backend)
{
	switch (job->op) {
	case BMM_STAMP:
		backend->stamp(job->dst, job->image,
			       job->len / job->image->size);
		break;
	case BMM_COPY:
		backend->copy(job->dst, job->src, job->len);
		break;
	case BMM_COPY_STREAMING:
		backend->copy_streaming(job->dst, job->src, job->len);
		break;
	case BMM_CLEAR:
		backend->clear(job->dst, job->len);
		break;
	default:
		backend->clear_streaming(job->dst, job->len);
		break;
	}
}
