// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the kernel's page tables by a walk of its own, so that nothing under
 * test judges itself.
 */
#include "vmap.h"
#include "vmap_arch.h"

/* The entry that maps an address. */
struct bmm_leaf bmm_leaf_at(unsigned long addr)
{
	struct bmm_leaf none = {};
	pgd_t *pgd = pgd_offset_pgd(bmm_arch_pgd(), addr);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;
	pte_t *pte;

	if (pgd_none(*pgd))
		return none;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d))
		return none;
	pud = pud_offset(p4d, addr);
	if (pud_none(*pud))
		return none;
	if (pud_leaf(*pud))
		return (struct bmm_leaf){ PUD_SIZE, pud_val(*pud) };
	pmd = pmd_offset(pud, addr);
	if (pmd_none(*pmd))
		return none;
	if (pmd_leaf(*pmd))
		return (struct bmm_leaf){ PMD_SIZE, pmd_val(*pmd) };
	pte = pte_offset_kernel(pmd, addr);
	if (pte_none(*pte))
		return none;
	return (struct bmm_leaf){ PAGE_SIZE, pte_val(*pte) };
}

/* The entry of PAGE_SIZE or PMD_SIZE that the kernel itself writes. */
struct bmm_leaf bmm_leaf_wanted(unsigned long pfn, unsigned long size,
				pgprot_t prot)
{
	u64 bits = size == PMD_SIZE ? bmm_arch_block(pfn, prot) :
				      pte_val(pfn_pte(pfn, prot));

	return (struct bmm_leaf){ size, bits };
}

/* The page that an entry maps at an address within it. */
unsigned long bmm_leaf_pfn(struct bmm_leaf leaf, unsigned long addr)
{
	unsigned long first = leaf.size == PMD_SIZE ?
				      pmd_pfn(__pmd(leaf.bits)) :
				      pte_pfn(__pte(leaf.bits));

	return first + PFN_DOWN(addr & (leaf.size - 1));
}

bool bmm_leaf_writable(struct bmm_leaf leaf)
{
	return bmm_arch_writable(__pte(leaf.bits));
}
