/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clear_unit.h - what is cleared between two chances to reschedule, by time
 *
 *	while (left) {
 *		cond_resched();
 *		n = bmm_unit_clear(zero, at, left, ns);
 *		at += n;
 *		left -= n;
 *	}
 *
 * Nothing of the kernel is needed here but what core/bmm_host.h offers: the
 * tests run it against a clock and backends of their own.
 */
#ifndef BMM_CLEAR_UNIT_H
#define BMM_CLEAR_UNIT_H

#include "../core/turn.h"

/**
 * struct bmm_zero_by - a backend of one kind of extents
 * @backend: who
 * @slice:   bytes that are lately right for a slice (clear_unit.c), 0: unknown
 */
struct bmm_zero_by {
	const struct bmm_backend *backend;
	size_t slice;
};

/**
 * struct bmm_zero - extents of one kind, for which one backend is picked
 * @op:     BMM_CLEAR or BMM_CLEAR_STREAMING
 * @pick:   which is the fastest
 * @serves: one of @by: forced, or decided on; NULL while @pick measures
 * @by:     the candidates by their numbers and, last, another that was forced
 */
struct bmm_zero {
	enum bmm_op op;
	struct bmm_pick *pick;
	struct bmm_zero_by *serves;
	struct bmm_zero_by by[BMM_CANDIDATES + 1];
};

size_t bmm_unit_clear(struct bmm_zero *zero, char *at, size_t left, uint64_t ns);
void bmm_unit_forget(struct bmm_zero *zero);

#endif
