/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * select.h - the backend selected for a call
 *
 * A table of one pointer for each operation and class of calls, written when an
 * operation is calibrated and when a user selects; a call reads one of them.
 */
#ifndef BMM_SELECT_H
#define BMM_SELECT_H

#include "bmm.h"

/*
 * Classes by length: below 2 KiB, where nothing is measured; to 8 KiB and to
 * 48 KiB, the largest L1 caches, measured in the cache; above, measured cold
 * and, if it is to stay in the cache, in it too. Twice as many, as the source
 * of a copy has the same offset within a cache line or another one.
 */
#define BMM_CLASSES 8U
#define BMM_SHORT   2048U

static inline unsigned int bmm_class(size_t len, uintptr_t skew)
{
	return 2U * ((len >= BMM_SHORT) + (len >= 4 * BMM_SHORT) +
		     (len >= 24 * BMM_SHORT)) +
	       (skew % 64 != 0);
}

/* NULL: not calibrated. A row fills a cache line. */
extern const struct bmm_backend *bmm_selections[BMM_OPS][BMM_CLASSES];

/* Bytes above which a cached operation streams: nothing could be left there. */
extern size_t bmm_streams_above[BMM_OPS];

const struct bmm_backend *bmm_select(enum bmm_op op, unsigned int class);

/* @skew: of a copy, the addresses' difference */
static inline const struct bmm_backend *bmm_selected(enum bmm_op op, size_t len,
						     uintptr_t skew)
{
	unsigned int class = bmm_class(len, skew);
	const struct bmm_backend *backend = bmm_get(&bmm_selections[op][class]);

	return backend ? backend : bmm_select(op, class);
}

/* The operation that serves a call, once a backend was selected for it. */
static inline enum bmm_op bmm_serves(enum bmm_op op, size_t len)
{
	if (len <= bmm_get(&bmm_streams_above[op]))
		return op;
	return op == BMM_CLEAR ? BMM_CLEAR_STREAMING : BMM_COPY_STREAMING;
}

#endif
