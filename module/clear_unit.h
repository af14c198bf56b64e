/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clear_unit.h - what is cleared between two chances to reschedule
 *
 *	while (left) {
 *		cond_resched();
 *		n = bmm_unit_clear(zero, mine, &want, at, left, &ns);
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

#define BMM_ZERO_KINDS 4

/**
 * struct bmm_zero - extents of one kind, for which one backend is picked
 * @op:      BMM_CLEAR or BMM_CLEAR_STREAMING
 * @kind:    its number
 * @settled: @serves is what bmm_zero_settled() leads to
 * @serves:  number of a backend: forced, or decided on; -1 while @pick measures
 * @pick:    which is the fastest
 * @by:      the candidates by their numbers and, last, another that was forced
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
 * struct bmm_units - what one CPU knows of units; zero is a valid start
 * @until: units that are cleared before the next that is timed
 * @fit:   bytes that a unit may have, by kind and backend; 0: not known
 */
struct bmm_units {
	unsigned int until;
	size_t fit[BMM_ZERO_KINDS][BMM_CANDIDATES + 1];
};

/**
 * struct bmm_unit_want - what units are to be like
 * @bytes: at most
 * @ns:    time between two chances to reschedule; 0: pages
 * @by_ns: whether that matters: not on a kernel that preempts
 * @timed: each of them
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

/* Zeroes by the backend that @zero is settled on; the host's. */
void bmm_zero_settled(const struct bmm_zero *zero, void *at, size_t len);

#endif
