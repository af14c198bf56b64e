/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own page tables on x86, as far as they exist: tables are
 * allocated by the kernel's functions only.
 *
 * Entries are plain memory here. Under Xen PV they are not: the path does not
 * attach there.
 */
#ifndef BMM_X86_PAGETABLE_H
#define BMM_X86_PAGETABLE_H

#include <linux/pgtable.h>
#include <xen/xen.h>

static inline bool bmm_pagetable_writable(void)
{
	return !xen_pv_domain();
}

/* The entry for @addr, and at which level the walk ended; NULL: no table. */
static inline pte_t *bmm_pagetable_walk(unsigned long addr, unsigned int *level)
{
	return lookup_address(addr, level);
}

/* The page table entry for @addr, NULL if there is no table of such. */
static inline pte_t *bmm_pagetable_pte(unsigned long addr)
{
	unsigned int level;
	pte_t *pte = bmm_pagetable_walk(addr, &level);

	return pte && level == PG_LEVEL_4K ? pte : NULL;
}

/* The entry for @addr if it is a leaf of PMD_SIZE, else NULL. */
static inline pmd_t *bmm_pagetable_leaf(unsigned long addr)
{
	unsigned int level;
	pte_t *pte = bmm_pagetable_walk(addr, &level);

	return pte && level == PG_LEVEL_2M ? (pmd_t *)pte : NULL;
}

static inline bool bmm_pagetable_none(const pte_t *pte)
{
	return !native_pte_val(READ_ONCE(*pte));
}

/* From entry to entry the physical address grows by a page. */
static inline pteval_t bmm_pagetable_next(pteval_t value)
{
	return value + PAGE_SIZE;
}

static inline void bmm_pagetable_set(pte_t *pte, pteval_t value)
{
	native_set_pte(pte, native_make_pte(value));
}

#endif
