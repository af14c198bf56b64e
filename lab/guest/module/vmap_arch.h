/* SPDX-License-Identifier: GPL-2.0-only */
/* What is specific to each architecture's page tables. */
#ifndef BMM_VMAP_ARCH_H
#define BMM_VMAP_ARCH_H

#include <linux/mm.h>
#include <linux/pgtable.h>

/* init_mm is not exported: get the address of its table from the CPU. */
#ifdef CONFIG_ARM64
#include <asm/sysreg.h>

#define TTBR_TABLE GENMASK_ULL(47, 6)

static inline pgd_t *bmm_arch_pgd(void)
{
	return __va(read_sysreg(ttbr1_el1) & TTBR_TABLE);
}

static inline u64 bmm_arch_block(unsigned long pfn, pgprot_t prot)
{
	return pmd_val(pfn_pmd(pfn, mk_pmd_sect_prot(prot)));
}

static inline bool bmm_arch_writable(pte_t pte)
{
	return pte_write(pte);
}

/* Entries of a contpte group, which is aligned. */
#define BMM_ARCH_GROUP	    CONT_PTES
#define BMM_ARCH_CONTIGUOUS PTE_CONT

/* set_memory_*() accepts areas of vmalloc() only, not of vmap() */
#define BMM_ARCH_SET_MEMORY (-EINVAL)

/* A landing pad (BTI), then return to the caller. */
#define BMM_ARCH_RETURN "	hint	34\n	ret\n"
#else
static inline pgd_t *bmm_arch_pgd(void)
{
	return __va(read_cr3_pa()); /* a task's table has the kernel half too */
}

static inline u64 bmm_arch_block(unsigned long pfn, pgprot_t prot)
{
	prot = pgprot_4k_2_large(prot);
	return pte_val(pfn_pte(pfn, __pgprot(pgprot_val(prot) | _PAGE_PSE)));
}

/* pte_write() takes a read-only dirty entry for a shadow stack */
static inline bool bmm_arch_writable(pte_t pte)
{
	return pte_flags(pte) & _PAGE_RW;
}

#define BMM_ARCH_GROUP	    1
#define BMM_ARCH_CONTIGUOUS 0
#define BMM_ARCH_SET_MEMORY 0
#define BMM_ARCH_RETURN	    ASM_ENDBR ASM_RET
#endif

#endif
