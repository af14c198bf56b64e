/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * serve.h - which backend serves a call, by operation and size
 *
 *	backend = bmm_serving(op, len);
 *	if (backend)
 *		... all of it with backend ...
 *	else
 *		bmm_serve(&job);
 */
#ifndef BMM_SERVE_H
#define BMM_SERVE_H

#include "bmm.h"

/*
 * Size classes in powers of four: below 4 KiB, from 4 KiB, from 16 KiB ... from
 * 1 GiB. The first is never measured: the clock's resolution is too coarse.
 */
#define BMM_CLASSES 11U

static inline unsigned int bmm_class(size_t len)
{
	unsigned int log = 63U - (unsigned int)__builtin_clzll(len | 1);
	unsigned int class = log < 12 ? 0 : (log - 10) / 2;

	return class < BMM_CLASSES ? class : BMM_CLASSES - 1;
}

/* NULL: not decided. Written when decided, and when a user selects. */
extern const struct bmm_backend *bmm_served[BMM_OPS][BMM_CLASSES];

static inline const struct bmm_backend *bmm_serving(enum bmm_op op, size_t len)
{
	return bmm_get(&bmm_served[op][bmm_class(len)]);
}

void bmm_serve(const struct bmm_job *job);
const struct bmm_backend *bmm_backend_serving(enum bmm_op op, size_t len);

#endif
