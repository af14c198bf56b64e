// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of backends.
 *
 * The last backend of the table that has an operation, and that the CPU
 * supports, is the default for it until something is measured; so the order
 * holds per operation, not between backends that share none. REP STOSQ stands
 * before ordinary stores because a CPU without ERMS may take it word by word;
 * MOVNTI by eight records, which is for emulators, before that by one;
 * MOPS stands last because there the CPU is told the whole length, and free in
 * how to store it.
 */
#include "backends.h"
#include "choose.h"

const struct bmm_backend *const bmm_backends[] = {
	&bmm_generic,
#ifdef __x86_64__
	&bmm_x86_rep_q,	 &bmm_x86_plain,  &bmm_x86_rep_b,   &bmm_x86_movnti8,
	&bmm_x86_movnti, &bmm_x86_clzero,
#endif
#ifdef __aarch64__
	&bmm_arm64_stp,	 &bmm_arm64_stnp, &bmm_arm64_dczva, &bmm_arm64_mops,
#endif
};

const size_t bmm_backends_nr = sizeof(bmm_backends) / sizeof(bmm_backends[0]);

_Static_assert(sizeof(bmm_backends) / sizeof(bmm_backends[0]) <= BMM_CHOOSE_MAX,
	       "a chooser has room for every backend");

/* NULL: not looked for yet. */
static const struct bmm_backend *fastest[BMM_OPS];

static bool same_name(const char *backend, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!backend[i] || backend[i] != name[i])
			return false;
	return !backend[len];
}

static bool has_op(const struct bmm_backend *backend, enum bmm_op op)
{
	switch (op) {
	case BMM_STAMP:
		return backend->stamp;
	case BMM_COPY:
		return backend->copy;
	case BMM_CLEAR:
		return backend->clear;
	case BMM_CLEAR_STREAMING:
		return backend->clear_streaming;
	default:
		return false;
	}
}

/**
 * bmm_backend_can() - whether a backend serves for an operation here
 * @backend: one of bmm_backends
 * @op:      the operation
 *
 * Return: whether it has the operation and this CPU supports it.
 */
bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op)
{
	return has_op(backend, op) && backend->supported();
}

/**
 * bmm_backend_find() - look a backend up by name
 * @op:   what it is wanted for
 * @name: name, not necessarily terminated
 * @len:  its length in bytes
 *
 * Return: the backend, or NULL if no backend of this name is built in, it
 * does not have the operation, or this CPU does not support it.
 */
const struct bmm_backend *bmm_backend_find(enum bmm_op op, const char *name,
					   size_t len)
{
	size_t i;

	for (i = 0; i < bmm_backends_nr; i++)
		if (same_name(bmm_backends[i]->name, name, len))
			return bmm_backend_can(bmm_backends[i], op) ?
				       bmm_backends[i] :
				       NULL;
	return NULL;
}

static const struct bmm_backend *last_that_can(enum bmm_op op)
{
	size_t i = bmm_backends_nr;

	while (--i)
		if (bmm_backend_can(bmm_backends[i], op))
			break;
	return bmm_backends[i];
}

/**
 * bmm_backend_default() - the fastest guess this CPU supports
 * @op: the operation, below BMM_OPS
 *
 * The CPU is asked once: threads that come together find the same.
 *
 * Return: a backend, never NULL (generic has all and is supported everywhere).
 */
const struct bmm_backend *bmm_backend_default(enum bmm_op op)
{
	const struct bmm_backend *found = __atomic_load_n(&fastest[op],
							  __ATOMIC_RELAXED);

	if (!found) {
		found = last_that_can(op);
		__atomic_store_n(&fastest[op], found, __ATOMIC_RELAXED);
	}
	return found;
}
