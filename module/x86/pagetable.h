/* SPDX-License-Identifier: GPL-2.0-only */
/* Page tables on x86; see ../pagetable.h. */
#ifndef BMM_X86_PAGETABLE_H
#define BMM_X86_PAGETABLE_H

#include <xen/xen.h>

#define BMM_GROUP 1

static inline enum bmm_level bmm_pagetable_walk(unsigned long addr,
						pte_t **entry)
{
	unsigned int level;

	*entry = lookup_address(addr, &level);
	if (!*entry)
		return BMM_NOTHING;
	if (level == PG_LEVEL_4K)
		return BMM_ENTRIES;
	return level == PG_LEVEL_2M ? BMM_LEAF : BMM_LARGER;
}

/* Under Xen PV page tables are read-only. */
static inline bool bmm_pagetable_writable(void)
{
	return !xen_pv_domain();
}

/* Entries that are not present may hold an inverted address. */
static inline bool bmm_pagetable_present(pgprot_t prot)
{
	return pgprot_val(prot) & _PAGE_PRESENT;
}

static inline bool bmm_pagetable_linear(phys_addr_t phys, unsigned long size)
{
	return true;
}

static inline pteval_t bmm_pagetable_value(pte_t pte)
{
	return native_pte_val(pte);
}

/* The PFN is in the same bits for all entries that map memory. */
static inline pteval_t bmm_pagetable_entry(pteval_t base, unsigned long pfn)
{
	return base + (pfn << PAGE_SHIFT);
}

static inline void bmm_pagetable_set(pte_t *pte, pteval_t value)
{
	native_set_pte(pte, native_make_pte(value));
}

/* The walker sees stores in order, as loads of other CPUs do. */
static inline void bmm_pagetable_drain(void)
{
}

static inline pteval_t bmm_pagetable_group(pteval_t value)
{
	return value;
}

#endif
