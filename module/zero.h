/* SPDX-License-Identifier: GPL-2.0-only */
/* zero.h - what the paths that clear share: which op, and which backend */
#ifndef BMM_ZERO_H
#define BMM_ZERO_H

#include "clear_unit.h"
#include "picks.h"

extern const char *const bmm_zero_modes[];
extern unsigned long bmm_zero_cached_max;
extern struct bmm_picks bmm_zero_picks[2];

void bmm_zero_init(void);
void bmm_zero_exit(void);

enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating);
void bmm_zero(enum bmm_op op, void *at, size_t len);
size_t bmm_zero_unit(enum bmm_op op, size_t extent, char *at, size_t left,
		     u64 ns);
const char *bmm_zero_serving(enum bmm_op op, size_t len);
void bmm_zero_forget_units(void);

#endif
