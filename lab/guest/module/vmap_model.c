// SPDX-License-Identifier: GPL-2.0-only
/*
 * The judge: a mapping must match its page array, whoever made it. Each entry
 * is compared with the one that the kernel itself would write; the page at each
 * address is checked with vmalloc_to_page() and by a store or a load through
 * the mapping. Page tables are read by a walk of its own, so that nothing under
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
static struct bmm_leaf leaf_wanted(unsigned long pfn, unsigned long size,
				   pgprot_t prot)
{
	u64 bits = size == PMD_SIZE ? bmm_arch_block(pfn, prot) :
				      pte_val(pfn_pte(pfn, prot));

	return (struct bmm_leaf){ size, bits };
}

/* The page that an entry maps at an address within it. */
static unsigned long leaf_pfn(struct bmm_leaf leaf, unsigned long addr)
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

#define PMD_PAGES PFN_DOWN(PMD_SIZE)
#define SERVED	  64 /* pages of the smallest request that is served */

/* Counts an error and keeps the first one, written without spaces. */
void bmm_model_wrong(struct bmm_verdict *verdict, const char *what,
		     unsigned long index, u64 is, u64 wanted)
{
	if (!verdict->wrong++)
		snprintf(verdict->first, sizeof(verdict->first),
			 "%s:array=%lu,page=%lu,is=%llx,wanted=%llx", what,
			 verdict->arrays, index, is, wanted);
}

/*
 * Whether the @size pages from array[@i] on can be mapped as one at @addr: by a
 * PMD mapping, or a contpte group.
 */
static bool fits_as_one(unsigned long addr, struct page **array,
			unsigned long nr, unsigned long i, unsigned long size)
{
	unsigned long pfn = page_to_pfn(array[i]), n;

	if (!IS_ALIGNED(addr, size * PAGE_SIZE) || !IS_ALIGNED(pfn, size) ||
	    nr - i < size)
		return false;
	for (n = 1; n < size; n++)
		if (page_to_pfn(array[i + n]) != pfn + n)
			return false;
	return true;
}

/* Stores a word through one mapping of the page, reads it through the other. */
static void check_data(struct bmm_verdict *verdict, unsigned long addr,
		       struct page *page, unsigned long i, bool writable)
{
	unsigned long at = (i * 72) % PAGE_SIZE & ~7UL;
	u64 *mapped = (u64 *)(addr + at), *linear = page_address(page) + at;
	u64 word = addr ^ (i << 40) ^ verdict->arrays;

	WRITE_ONCE(*(writable ? mapped : linear), word);
	if (READ_ONCE(*(writable ? linear : mapped)) != word)
		bmm_model_wrong(verdict, "data", i, READ_ONCE(*linear), word);
}

static void check_page(struct bmm_verdict *verdict, unsigned long addr,
		       struct page *page, unsigned long i, bool writable)
{
	struct page *is = vmalloc_to_page((void *)addr);

	if (is != page)
		bmm_model_wrong(verdict, "page", i, is ? page_to_pfn(is) : 0,
				page_to_pfn(page));
	else
		check_data(verdict, addr, page, i, writable);
}

/*
 * Compares the entries of a contpte group, or a single one; returns how many
 * it compared.
 */
static unsigned long check_entries(struct bmm_verdict *verdict,
				   unsigned long addr, struct page **array,
				   unsigned long nr, unsigned long i,
				   pgprot_t prot, enum bmm_large large)
{
	bool grouped = bmm_leaf_at(addr).bits & BMM_ARCH_CONTIGUOUS;
	bool fits = BMM_ARCH_GROUP > 1 &&
		    fits_as_one(addr, array, nr, i, BMM_ARCH_GROUP);
	unsigned long n, size = grouped && fits ? BMM_ARCH_GROUP : 1;

	if (grouped && (!fits || large == BMM_LARGE_NEVER))
		bmm_model_wrong(verdict, "grouped", i, 1, 0);
	if (!grouped && fits && large == BMM_LARGE_ALWAYS && nr >= SERVED)
		bmm_model_wrong(verdict, "ungrouped", i, 0, 1);
	for (n = 0; n < size; n++) {
		struct bmm_leaf is = bmm_leaf_at(addr + n * PAGE_SIZE);
		struct bmm_leaf wanted = leaf_wanted(page_to_pfn(array[i + n]),
						     PAGE_SIZE, prot);

		wanted.bits |= grouped ? BMM_ARCH_CONTIGUOUS : 0;
		if (is.size != wanted.size || is.bits != wanted.bits)
			bmm_model_wrong(verdict, "entry", i + n, is.bits,
					wanted.bits);
	}
	verdict->small += size;
	return size;
}

/* Compares what maps @addr; returns how many pages that covers, at least 1. */
static unsigned long check_leaf(struct bmm_verdict *verdict, unsigned long addr,
				struct page **array, unsigned long nr,
				unsigned long i, pgprot_t prot,
				enum bmm_large large)
{
	bool fits = fits_as_one(addr, array, nr, i, PMD_PAGES);
	struct bmm_leaf is = bmm_leaf_at(addr), wanted;

	if (is.size == PMD_SIZE && (!fits || large == BMM_LARGE_NEVER)) {
		bmm_model_wrong(verdict, "large", i, is.size, PAGE_SIZE);
		return 1;
	}
	if (is.size != PMD_SIZE && fits && large == BMM_LARGE_ALWAYS) {
		bmm_model_wrong(verdict, "small", i, is.size, PMD_SIZE);
		return 1;
	}
	if (is.size != PMD_SIZE)
		return check_entries(verdict, addr, array, nr, i, prot, large);
	wanted = leaf_wanted(page_to_pfn(array[i]), PMD_SIZE, prot);
	if (is.bits != wanted.bits)
		bmm_model_wrong(verdict, "entry", i, is.bits, wanted.bits);
	verdict->large++;
	return PMD_PAGES;
}

/* Compares a mapping with its page array. */
void bmm_model_mapped(struct bmm_verdict *verdict, unsigned long addr,
		      struct page **array, unsigned long nr, pgprot_t prot,
		      enum bmm_large large)
{
	bool writable = bmm_leaf_writable(
		leaf_wanted(page_to_pfn(array[0]), PAGE_SIZE, prot));
	unsigned long i, next = 0;

	for (i = 0; i < nr; i++) {
		unsigned long at = addr + i * PAGE_SIZE;

		if (i == next)
			next += check_leaf(verdict, at, array, nr, i, prot,
					   large);
		check_page(verdict, at, array[i], i, writable);
	}
	verdict->pages += nr;
}

/*
 * Checks that nothing of a mapping is left. Somebody else may map there by now,
 * but not the same page.
 */
void bmm_model_gone(struct bmm_verdict *verdict, unsigned long addr,
		    struct page **array, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		unsigned long at = addr + i * PAGE_SIZE;
		struct bmm_leaf is = bmm_leaf_at(at);

		if (is.size && leaf_pfn(is, at) == page_to_pfn(array[i]))
			bmm_model_wrong(verdict, "left", i, is.bits, 0);
	}
}

/*
 * How far a failed mapping got: the number of pages mapped from the start on,
 * or -1 if an entry maps another page or follows a gap.
 */
unsigned long bmm_model_prefix(unsigned long addr, struct page **array,
			       unsigned long nr)
{
	unsigned long i, prefix = nr;

	for (i = 0; i < nr; i++) {
		unsigned long at = addr + i * PAGE_SIZE;
		struct bmm_leaf is = bmm_leaf_at(at);

		if (!is.size)
			prefix = min(prefix, i);
		else if (prefix < nr || !array[i] ||
			 leaf_pfn(is, at) != page_to_pfn(array[i]))
			return -1;
	}
	return prefix;
}
