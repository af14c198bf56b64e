/* SPDX-License-Identifier: GPL-2.0-only */
/* zero.h - shared by the paths that clear: which op, and which backend */
#ifndef BMM_ZERO_H
#define BMM_ZERO_H

#include <linux/pgtable.h>

#include "clear_unit.h"
#include "path.h"

#define BMM_ZERO_ORDERS (PUD_SHIFT - PAGE_SHIFT + 1)

/* A counter of a path that zeroes: BMM_BYTES when a unit was last timed. */
#define BMM_ZERO_TIMED BMM_OWN

/* Another: those of BMM_BYTES that bypassed the cache. */
#define BMM_ZERO_STREAMED (BMM_OWN + 1)

/**
 * struct bmm_zero_gap - folios of one order, on a kernel that does not preempt
 * @folios:  number of folios
 * @units:   units cleared, each between two chances to reschedule
 * @over:    timed units that took longer than promised
 * @longest: time of the longest timed unit, ns
 */
struct bmm_zero_gap {
	s64 folios;
	s64 units;
	s64 over;
	u64 longest;
};

/* Per CPU, so that no cache line is shared. */
struct bmm_zero_cpu {
	struct bmm_units units;
	struct bmm_zero_gap gaps[BMM_ZERO_ORDERS];
};

extern const char *const bmm_zero_modes[];
extern unsigned long bmm_zero_cached_max;
extern struct bmm_picks bmm_zero_picks[2];
extern struct bmm_attribute bmm_zero_streamed_attr;
extern struct bmm_zero_cpu __percpu *bmm_zero_cpus;

int bmm_zero_init(void);
void bmm_zero_exit(void);

enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating);
size_t bmm_zero(struct bmm_path *path, enum bmm_op op,
		const struct bmm_unit_want *want, size_t extent, char *at,
		size_t left, u64 *ns);
const char *bmm_zero_serving(enum bmm_op op, size_t len);
void bmm_zero_forget_units(void);

#endif
