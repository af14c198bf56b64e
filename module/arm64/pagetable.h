/* SPDX-License-Identifier: GPL-2.0-only */
/* Page tables on arm64; see ../pagetable.h. */
#ifndef BMM_ARM64_PAGETABLE_H
#define BMM_ARM64_PAGETABLE_H

#include <linux/mm.h>
#include <asm/sysreg.h>

#define BMM_GROUP CONT_PTES

/*
 * In the kernel, TTBR1 holds the address in init_mm.pgd, which is not exported:
 * the ASID in its upper bits, a flag in the lowest, and in bits 2 to 5 the part
 * of an address above 48 bits.
 */
static inline pgd_t *bmm_pagetable_root(void)
{
	u64 ttbr = read_sysreg(ttbr1_el1);
	phys_addr_t root = ttbr & GENMASK_ULL(47, 6);

	if (IS_ENABLED(CONFIG_ARM64_PA_BITS_52))
		root |= (ttbr & GENMASK_ULL(5, 2)) << 46;
	return phys_to_virt(root);
}

static inline enum bmm_level bmm_pagetable_walk(unsigned long addr,
						pte_t **entry)
{
	pgd_t *pgd = pgd_offset_pgd(bmm_pagetable_root(), addr);
	p4d_t *p4d;
	pud_t *pud, upper;
	pmd_t *pmd, middle;

	/* read each level once: others fill the tables concurrently */
	if (pgd_none(READ_ONCE(*pgd)))
		return BMM_NOTHING;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(READ_ONCE(*p4d)))
		return BMM_NOTHING;
	pud = pud_offset(p4d, addr);
	upper = READ_ONCE(*pud);
	if (pud_none(upper))
		return BMM_NOTHING;
	if (pud_leaf(upper))
		return BMM_LARGER;
	pmd = pmd_offset(pud, addr);
	middle = READ_ONCE(*pmd);
	if (pmd_none(middle))
		return BMM_NOTHING;
	*entry = (pte_t *)pmd;
	if (pmd_leaf(middle))
		return BMM_LEAF;
	*entry = pte_offset_kernel(pmd, addr);
	return BMM_ENTRIES;
}

static inline bool bmm_pagetable_writable(void)
{
	return true;
}

static inline bool bmm_pagetable_present(pgprot_t prot)
{
	return pgprot_val(prot) & PTE_VALID;
}

/* Bits 48 and above are in another place in an entry. */
static inline bool bmm_pagetable_linear(phys_addr_t phys, unsigned long size)
{
	return !((phys ^ (phys + size - 1)) >> 48);
}

static inline pteval_t bmm_pagetable_value(pte_t pte)
{
	return pte_val(pte);
}

static inline pteval_t bmm_pagetable_entry(pteval_t base, unsigned long pfn)
{
	return pte_val(pfn_pte(pfn, __pgprot(base)));
}

static inline void bmm_pagetable_set(pte_t *pte, pteval_t value)
{
	WRITE_ONCE(*pte, __pte(value));
}

/*
 * DSB: the walker sees the entries. ISB: discards instructions fetched before,
 * which found no translation.
 */
static inline void bmm_pagetable_drain(void)
{
	dsb(ishst);
	isb();
}

static inline pteval_t bmm_pagetable_group(pteval_t value)
{
	return value | PTE_CONT;
}

#endif
