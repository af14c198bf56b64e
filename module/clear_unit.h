/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clear_unit.h - clearing between two chances to reschedule
 *
 *	while (left) {
 *		cond_resched();
 *		n = bmm_unit_clear(zero, mine, &want, at, left, &ns);
 *		at += n;
 *		left -= n;
 *	}
 *
 * Needs nothing of the kernel beyond core/bmm_host.h: the tests run it with
 * their own clock and backends.
 */
#ifndef BMM_CLEAR_UNIT_H
#define BMM_CLEAR_UNIT_H

#include "../core/turn.h"

#define BMM_ZERO_KINDS 4

/**
 * struct bmm_zero - extents of one kind, for which one backend is picked
 * @op:      BMM_CLEAR or BMM_CLEAR_STREAMING
 * @kind:    its number
 * @settled: bmm_zero_settled() calls @serves
 * @serves:  number of the backend that is forced or decided on; -1 while @pick
 *           measures
 * @pick:    picks the fastest
 * @by:      the candidates by number and, last, a forced one that is none
 */
struct bmm_zero {
	enum bmm_op op;
	unsigned int kind;
	bool settled;
	int serves;
	struct bmm_pick *pick;
	const struct bmm_backend *by[BMM_CANDIDATES + 1];
};

/**
 * struct bmm_units - what one CPU knows about units; valid when zeroed
 * @until: units to clear before the next timed one
 * @fit:   bytes that a unit may have, by kind and backend; 0: unknown
 */
struct bmm_units {
	unsigned int until;
	size_t fit[BMM_ZERO_KINDS][BMM_CANDIDATES + 1];
};

/**
 * struct bmm_unit_want - how units should be
 * @bytes: largest unit
 * @ns:    time between two chances to reschedule; 0: clear page by page
 * @by_ns: whether @ns matters: not on a preemptible kernel
 * @timed: time each unit
 */
struct bmm_unit_want {
	size_t bytes;
	uint64_t ns;
	bool by_ns;
	bool timed;
};

size_t bmm_unit_clear(struct bmm_zero *zero, struct bmm_units *mine,
		      const struct bmm_unit_want *want, char *at, size_t left,
		      uint64_t *ns);

/* Zeroes with the backend that @zero is settled on; defined by the host. */
void bmm_zero_settled(const struct bmm_zero *zero, void *at, size_t len);

#endif
