/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CLEAR_DECIDE_H
#define BMM_CLEAR_DECIDE_H

#include "path.h"

extern const char *const bmm_clear_modes[];
extern unsigned long bmm_clear_cached_max;

void bmm_clear_decide_init(void);
enum bmm_op bmm_clear_decide(size_t bytes, int mode, bool populating);

#endif
