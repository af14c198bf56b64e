/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own page tables, as far as they exist: tables are allocated only
 * by the kernel's functions. An architecture provides
 *
 * bmm_pagetable_walk()       what maps an address now
 * bmm_pagetable_writable()   whether entries are plain memory
 * bmm_pagetable_present()    whether a protection maps anything
 * bmm_pagetable_linear()     whether entries of a physical range are linear in
 *                            the PFN
 * bmm_pagetable_value()      an entry as a number
 * bmm_pagetable_entry()      that of a PFN with a struct page, from the base
 * bmm_pagetable_set()        writes an entry that mapped nothing
 * bmm_pagetable_drain()      makes written entries visible to the walker
 * BMM_GROUP                  entries that may be marked as contiguous
 * bmm_pagetable_group()      marks an entry of such a group
 */
#ifndef BMM_PAGETABLE_H
#define BMM_PAGETABLE_H

#include <linux/pgtable.h>

enum bmm_level {
	BMM_NOTHING, /* no table for an entry */
	BMM_ENTRIES, /* an entry of PAGE_SIZE in a table */
	BMM_LEAF,    /* an entry of PMD_SIZE */
	BMM_LARGER,  /* something larger */
};

#ifdef CONFIG_ARM64
#include "arm64/pagetable.h"
#else
#include "x86/pagetable.h"
#endif

#define BMM_GROUP_SIZE (BMM_GROUP * PAGE_SIZE)

/* Of the entries for a protection. */
static inline pteval_t bmm_pagetable_base(pgprot_t prot)
{
	return bmm_pagetable_value(pfn_pte(0, prot));
}

static inline pteval_t bmm_pagetable_get(const pte_t *pte)
{
	return bmm_pagetable_value(READ_ONCE(*pte));
}

static inline bool bmm_pagetable_none(const pte_t *pte)
{
	return !bmm_pagetable_get(pte);
}

/* The entry of PAGE_SIZE for @addr, NULL if there is no table for it. */
static inline pte_t *bmm_pagetable_pte(unsigned long addr)
{
	pte_t *pte;

	return bmm_pagetable_walk(addr, &pte) == BMM_ENTRIES ? pte : NULL;
}

/* The entry of PMD_SIZE for @addr, NULL if it is none. */
static inline pmd_t *bmm_pagetable_leaf(unsigned long addr)
{
	pte_t *pte;

	return bmm_pagetable_walk(addr, &pte) == BMM_LEAF ? (pmd_t *)pte : NULL;
}

#endif
