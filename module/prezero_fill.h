/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero_fill.h - zeroes free hugetlb pages */
#ifndef BMM_PREZERO_FILL_H
#define BMM_PREZERO_FILL_H

#include <linux/mm_types.h>
#include <linux/percpu.h>

/* What a page that goes back to its pool is. */
enum bmm_prezero_return {
	BMM_RETURN_NONE,   /* somebody else's */
	BMM_RETURN_ASIS,   /* the filler's, which left it as it was */
	BMM_RETURN_ZEROED, /* the filler's, all zero */
};

/* The page that this CPU's task is dropping, with preemption disabled. */
struct bmm_dropped {
	const struct folio *folio;
	enum bmm_prezero_return as;
};

DECLARE_PER_CPU(struct bmm_dropped, bmm_dropped);

/*
 * Whether a filler returns this page, which is on its way to the free list.
 * Answers once. Context: interrupts disabled.
 */
static inline enum bmm_prezero_return
bmm_prezero_returns(const struct folio *folio)
{
	if (likely(__this_cpu_read(bmm_dropped.folio) != folio))
		return BMM_RETURN_NONE;
	__this_cpu_write(bmm_dropped.folio, NULL);
	return __this_cpu_read(bmm_dropped.as);
}

int bmm_prezero_prove(void);
int bmm_prezero_fill(unsigned long kib, int nid, unsigned long pages,
		     unsigned long floor);

#endif
