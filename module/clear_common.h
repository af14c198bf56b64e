/* SPDX-License-Identifier: GPL-2.0-only */
/* clear_common.h - shared by the paths that clear: in the cache, or bypassing it */
#ifndef BMM_CLEAR_COMMON_H
#define BMM_CLEAR_COMMON_H

#include <linux/mm_types.h>

#include "../core/bmm.h"
#include "path.h"

/* A counter of a path that zeroes: those of BMM_BYTES that bypassed the cache. */
#define BMM_ZERO_STREAMED BMM_OWN

extern unsigned long bmm_zero_cached_max;

void bmm_zero_init(void);
bool bmm_is_populating(void);
enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating);
void bmm_zero(struct bmm_path *path, enum bmm_op op, void *at, size_t len);

/* prezero.c */
bool bmm_prezero_serves(struct folio *folio);

#endif
