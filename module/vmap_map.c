// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping into a page table, entry after entry without looking for the place
 * of each.
 *
 * Tables are the kernel's: where one is missing, its own function maps the
 * first page and allocates whatever that takes, and the rest is filled in
 * here. What is unusual (an entry is there already, a page is NULL or has no
 * struct page) is left to the kernel's function from that entry on, so that
 * its return, its warning and what it leaves behind are its own.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "vmap_map.h"
#include "x86/pagetable.h"

/*
 * Whether a PFN has a struct page is decided by the subsection: all pages of a
 * run inside of one are what the first is.
 */
static unsigned long valid_ahead(struct page *page)
{
	unsigned long pfn;

	if (!page)
		return 0;
	pfn = page_to_pfn(page);
	if (!pfn_valid(pfn))
		return 0;
	return PAGES_PER_SUBSECTION - pfn % PAGES_PER_SUBSECTION;
}

/* Entries that are none, up to @nr, get the pages of one run; how many did. */
static unsigned long fill_run(pte_t *pte, struct page **pages, unsigned long nr,
			      pteval_t value)
{
	struct page *page = pages[0];
	unsigned long i;

	for (i = 0; i < nr; i++) {
		if (pages[i] != page + i || !bmm_pagetable_none(pte + i))
			break;
		bmm_pagetable_set(pte + i, value);
		value = bmm_pagetable_next(value);
	}
	return i;
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long fill_pages(pte_t *pte, struct page **pages,
				unsigned long nr, pgprot_t prot,
				struct bmm_vmap_count *count)
{
	unsigned long done = 0, ahead, n;

	while (done < nr) {
		ahead = valid_ahead(pages[done]);
		if (!ahead)
			break;
		n = fill_run(pte + done, pages + done, min(ahead, nr - done),
			     native_pte_val(mk_pte(pages[done], prot)));
		if (!n)
			break;
		if (!done || pages[done] != pages[done - 1] + 1)
			count->runs++;
		done += n;
	}
	count->small += done;
	return done;
}

/* Maps pages into at most one table. */
static int map_table(unsigned long addr, unsigned long end, pgprot_t prot,
		     struct page **pages, struct bmm_vmap_count *count)
{
	pte_t *pte = bmm_pagetable_pte(addr);
	unsigned long nr, done;
	int err;

	if (!pte) {
		err = static_call(bmm_vmap_pages)(addr, addr + PAGE_SIZE, prot,
						  pages);
		if (err)
			return err;
		addr += PAGE_SIZE;
		pages++;
		count->small++;
		if (addr == end)
			return 0;
		pte = bmm_pagetable_pte(addr);
	}
	nr = (end - addr) >> PAGE_SHIFT;
	done = pte ? fill_pages(pte, pages, nr, prot, count) : 0;
	if (done == nr)
		return 0;
	count->odd = true;
	return static_call(bmm_vmap_pages)(addr + (done << PAGE_SHIFT), end,
					   prot, pages + done);
}

/**
 * bmm_vmap_map_pages() - map an array of pages
 * @addr:   first address, page aligned
 * @end:    end of the range, page aligned, above @addr
 * @prot:   of every page; present
 * @pages:  the array
 * @blocks: entries of PMD_SIZE may be written where they fit
 * @count:  what was done is added to it
 *
 * Pages are mapped in the order of the array, so that on failure the range
 * holds what the kernel's own function would have left.
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_pages(unsigned long addr, unsigned long end, pgprot_t prot,
		       struct page **pages, bool blocks,
		       struct bmm_vmap_count *count)
{
	unsigned long next, nr;
	int err;

	for (; addr < end; addr = next) {
		nr = blocks ? bmm_vmap_blocks(addr, end, pages) : 0;
		if (nr) {
			next = addr + nr * PMD_SIZE;
			err = bmm_vmap_map_blocks(addr, nr, prot, *pages, count);
		} else {
			next = pmd_addr_end(addr, end);
			err = map_table(addr, next, prot, pages, count);
		}
		if (err)
			return err;
		pages += (next - addr) >> PAGE_SHIFT;
	}
	return 0;
}

/* Entries that are none get one physical range; how many did. */
static unsigned long fill_range(pte_t *pte, unsigned long nr, pteval_t value)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		if (!bmm_pagetable_none(pte + i))
			break;
		bmm_pagetable_set(pte + i, value);
		value = bmm_pagetable_next(value);
	}
	return i;
}

/* Maps a physical range into at most one table. */
static int map_range_table(unsigned long addr, unsigned long end,
			   phys_addr_t phys, pgprot_t prot,
			   struct bmm_vmap_count *count)
{
	pte_t *pte = bmm_pagetable_pte(addr);
	unsigned long nr, done;
	int err;

	if (!pte) {
		err = static_call(bmm_vmap_range)(addr, addr + PAGE_SIZE, phys,
						  prot, PAGE_SHIFT);
		if (err)
			return err;
		addr += PAGE_SIZE;
		phys += PAGE_SIZE;
		count->small++;
		if (addr == end)
			return 0;
		pte = bmm_pagetable_pte(addr);
	}
	nr = (end - addr) >> PAGE_SHIFT;
	done = pte ? fill_range(pte, nr,
				native_pte_val(pfn_pte(PHYS_PFN(phys), prot))) :
		     0;
	count->small += done;
	if (done == nr)
		return 0;
	count->odd = true;
	done <<= PAGE_SHIFT;
	return static_call(bmm_vmap_range)(addr + done, end, phys + done, prot,
					   PAGE_SHIFT);
}

/**
 * bmm_vmap_map_range() - map one physical range
 * @addr:           first address, page aligned
 * @end:            end of the range, page aligned, above @addr
 * @phys:           physical address for @addr, page aligned
 * @prot:           of every page; present
 * @max_page_shift: largest entry that the caller allows
 * @count:          what was done is added to it
 *
 * The part that larger entries can serve is the kernel's, in one piece.
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_range(unsigned long addr, unsigned long end, phys_addr_t phys,
		       pgprot_t prot, unsigned int max_page_shift,
		       struct bmm_vmap_count *count)
{
	bool large = max_page_shift >= PMD_SHIFT && !((addr ^ phys) & ~PMD_MASK);
	unsigned long next;
	int err;

	count->runs++;
	for (; addr < end; phys += next - addr, addr = next) {
		if (large && IS_ALIGNED(addr, PMD_SIZE) &&
		    end - addr >= PMD_SIZE) {
			next = ALIGN_DOWN(end, PMD_SIZE);
			count->blocks += (next - addr) >> PMD_SHIFT;
			err = static_call(bmm_vmap_range)(addr, next, phys,
							  prot, max_page_shift);
		} else {
			next = pmd_addr_end(addr, end);
			err = map_range_table(addr, next, phys, prot, count);
		}
		if (err)
			return err;
	}
	return 0;
}
