/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clear_unit.h - what is cleared between two chances to reschedule
 *
 *	while (left) {
 *		cond_resched();
 *		n = bmm_unit_clear(&unit, at, left);
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
 * struct bmm_unit - how long, and by whom
 * @op:    BMM_CLEAR or BMM_CLEAR_STREAMING
 * @node:  memory node
 * @whole: bytes of the whole operation, of which a unit is a part
 * @ns:    the time that is wanted for a unit
 * @bytes: if not 0, a unit is so many bytes, whatever time they take
 * @took:  set to the time that the last unit took, drained
 */
struct bmm_unit {
	enum bmm_op op;
	int node;
	size_t whole;
	uint64_t ns;
	size_t bytes;
	uint64_t took;
};

size_t bmm_unit_clear(struct bmm_unit *unit, char *at, size_t left);
void bmm_unit_forget(void);

#endif
