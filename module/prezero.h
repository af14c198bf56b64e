/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero.h - hugetlb pages that are known to be zero */
#ifndef BMM_PREZERO_H
#define BMM_PREZERO_H

#include <linux/mm_types.h>
#include <linux/percpu.h>

#include "path.h"

/* Counters of the path. BMM_OWN is zero.h's: bytes that were zeroed. */
enum bmm_prezero_counter {
	BMM_PREZERO_ZEROED = BMM_OWN + 1, /* pages that became known */
	BMM_PREZERO_FORGOTTEN,		  /* pages that ceased to be, unused */
};

bool bmm_prezero_serves(struct folio *folio);

/* The page that this CPU's task is dropping, with preemption disabled. */
DECLARE_PER_CPU(const struct folio *, bmm_dropped);

/*
 * Whether a filler returns this page, which is on its way to the free list.
 * Answers once. Context: interrupts disabled.
 */
static inline bool bmm_prezero_drops(const struct folio *folio)
{
	if (likely(__this_cpu_read(bmm_dropped) != folio))
		return false;
	__this_cpu_write(bmm_dropped, NULL);
	return true;
}

int bmm_prezero_prove(void);
int bmm_prezero_fill(unsigned long kib, int nid, unsigned long pages,
		     unsigned long floor);

#endif
