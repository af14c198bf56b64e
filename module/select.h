/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * select.h - the backend of each operation: the fastest one, measured when the
 * module is loaded, or one that is forced
 */
#ifndef BMM_SELECT_H
#define BMM_SELECT_H

#include <linux/kobject.h>
#include <linux/static_call.h>
#include <linux/types.h>

#include "../core/bmm.h"

/* The selected backends' functions. */
typedef void bmm_select_clear_fn(void *at, size_t len);
DECLARE_STATIC_CALL(bmm_selected_cached, *(bmm_select_clear_fn *)NULL);
DECLARE_STATIC_CALL(bmm_selected_streaming, *(bmm_select_clear_fn *)NULL);

extern struct kobj_attribute bmm_select_files[BMM_OPS];

void bmm_select_init(void);
const struct bmm_backend *bmm_selected(enum bmm_op op);
unsigned int bmm_selected_rate(enum bmm_op op);

#endif
