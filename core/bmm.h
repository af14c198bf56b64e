/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* bmm.h - internals of bulkmm.h: backends, and operations as values */
#ifndef BMM_H
#define BMM_H

#define BMM_INTERNAL

#include "bmm_host.h"
#include "bulkmm.h"

#define BMM_TEXT(number)   #number
#define BMM_TEXT_OF(macro) BMM_TEXT(macro)
#define BMM_VERSION                    \
	BMM_TEXT_OF(BMM_VERSION_MAJOR) \
	"." BMM_TEXT_OF(BMM_VERSION_MINOR) "." BMM_TEXT_OF(BMM_VERSION_PATCH)

/**
 * struct bmm_backend - one way to issue the stores
 * @name:            what a user types to force it
 * @level:           its copies are slow unless source and destination have the
 *                   same offset within a cache line
 * @supported:       whether this CPU has it; NULL: always
 * @stamp:           as bmm_stamp(), arguments already checked
 * @copy:            as bmm_copy()
 * @copy_streaming:  as bmm_copy_streaming()
 * @clear:           as bmm_clear()
 * @clear_streaming: as bmm_clear_streaming()
 *
 * An operation that a backend lacks is NULL. One that it has keeps the
 * operation's contract: streaming bypasses the cache and leaves the drain to
 * the caller, anything else leaves the destination in the cache.
 */
struct bmm_backend {
	const char *name;
	bool level;
	bool (*supported)(void);
	void (*stamp)(void *dst, const struct bmm_image *image, size_t count);
	void (*copy)(void *dst, const void *src, size_t len);
	void (*copy_streaming)(void *dst, const void *src, size_t len);
	void (*clear)(void *dst, size_t len);
	void (*clear_streaming)(void *dst, size_t len);
};

/* The module never copies: its compiler drops what nothing refers to. */
#ifdef __KERNEL__
#define BMM_COPY_FN(function) (0 ? (function) : NULL)
#else
#define BMM_COPY_FN(function) (function)
#endif

#define BMM_CANDIDATES 16U /* at most, of one operation */

/* Plain C: the reference for tests. */
extern const struct bmm_backend bmm_generic;

/* The arrays that backends.def lists; a backend without a name ends each. */
#define BMM_BACKENDS(file) extern const struct bmm_backend bmm_##file[];
#include "backends.def"
#undef BMM_BACKENDS

const struct bmm_backend *bmm_backend_at(size_t i);
bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op);
const struct bmm_backend *bmm_backend_find(enum bmm_op op, const char *name,
					   size_t len);

/* Whether an operation may leave stores that only bmm_drain() orders. */
static inline bool bmm_op_streams(enum bmm_op op)
{
	return op != BMM_COPY && op != BMM_CLEAR;
}

/**
 * struct bmm_job - one operation
 * @op:    which
 * @dst:   as for the public function
 * @src:   source of a copy
 * @image: of a stamp
 * @len:   bytes; whole records of a stamp
 */
struct bmm_job {
	enum bmm_op op;
	void *dst;
	const void *src;
	const struct bmm_image *image;
	size_t len;
};

void bmm_job_do(const struct bmm_job *job, const struct bmm_backend *backend);

#endif
