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
#include <linux/align.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_map.h"

/*
 * Whether a PFN has a struct page is decided by the subsection: all pages of a
 * run inside of one are what the first is.
 */
static unsigned long vmap_valid_ahead(struct page *page)
{
	unsigned long pfn;

	if (!page)
		return 0;
	pfn = page_to_pfn(page);
	if (!pfn_valid(pfn))
		return 0;
	return PAGES_PER_SUBSECTION - pfn % PAGES_PER_SUBSECTION;
}

/* The array begins with a group, and the place for it is aligned too. */
static bool vmap_group_first(const struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	return BMM_GROUP > 1 && map->blocks && end - addr >= BMM_GROUP_SIZE &&
	       IS_ALIGNED(addr, BMM_GROUP_SIZE) && vmap_valid_ahead(*pages) &&
	       IS_ALIGNED(page_to_pfn(*pages), BMM_GROUP) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP);
}

/*
 * A group may begin here: as many entries, aligned in the table as the page is
 * in memory.
 */
static bool vmap_group_fits(const struct bmm_mapping *map, const pte_t *pte,
			    unsigned long pfn, unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks && nr >= BMM_GROUP &&
	       IS_ALIGNED((unsigned long)pte, BMM_GROUP * sizeof(*pte)) &&
	       IS_ALIGNED(pfn, BMM_GROUP);
}

static void vmap_set_group(struct bmm_mapping *map, pte_t *pte, pteval_t value)
{
	unsigned long i;

	value = bmm_pagetable_group(value);
	for (i = 0; i < BMM_GROUP; i++)
		bmm_pagetable_set(pte + i, value + i * PAGE_SIZE);
	map->groups++;
}

/**
 * bmm_vmap_set_group() - map a group of contiguous entries
 * @map:  protection; what was done is added
 * @pte:  the first entry; as in the kernel's range walker, of the group it
 *        alone is asked whether it maps something
 * @page: the first page; all the group's follow it in memory
 * @nr:   entries left in the range
 *
 * Return: false, with nothing done, if there is no room for one.
 */
bool bmm_vmap_set_group(struct bmm_mapping *map, pte_t *pte, struct page *page,
			unsigned long nr)
{
	if (!vmap_group_fits(map, pte, page_to_pfn(page), nr) ||
	    !bmm_pagetable_none(pte))
		return false;
	vmap_set_group(map, pte, bmm_pagetable_value(mk_pte(page, map->prot)));
	return true;
}

static bool vmap_all_none(const pte_t *pte, unsigned long nr)
{
	while (nr--)
		if (!bmm_pagetable_none(pte + nr))
			return false;
	return true;
}

/* The pages of an array from here on are a group, and have room for one. */
static bool vmap_is_group(const struct bmm_mapping *map, const pte_t *pte,
			  struct page **pages, unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks &&
	       vmap_group_fits(map, pte, page_to_pfn(*pages), nr) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP) &&
	       vmap_all_none(pte, BMM_GROUP);
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long vmap_fill_pages(struct bmm_mapping *map, pte_t *pte,
				     struct page **pages, unsigned long nr)
{
	unsigned long i, n, valid = 0, grouped = 0;
	struct page *expected = NULL;
	pteval_t value = 0;

	for (i = 0; i < nr; i += n) {
		struct page *page = pages[i];

		if (page != expected || !valid) {
			valid = vmap_valid_ahead(page);
			if (!valid)
				break;
			map->runs += page != expected;
			value = bmm_pagetable_value(mk_pte(page, map->prot));
		}
		if (vmap_is_group(map, pte + i, pages + i, nr - i)) {
			vmap_set_group(map, pte + i, value);
			n = BMM_GROUP;
			grouped += n;
		} else {
			if (!bmm_pagetable_none(pte + i))
				break;
			bmm_pagetable_set(pte + i, value);
			n = 1;
		}
		value += n * PAGE_SIZE;
		valid -= n;
		expected = page + n;
	}
	map->small += i - grouped;
	bmm_pagetable_drain();
	return i;
}

/*
 * Has the kernel make the table for @addr, by mapping the first page or, so
 * that no group is cut, the first group. Returns how many pages, or an errno.
 */
static long vmap_begin_table(struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	int err;

	if (vmap_group_first(map, addr, end, pages)) {
		err = static_call(bmm_vmap_range)(addr, addr + BMM_GROUP_SIZE,
						  page_to_phys(*pages),
						  map->prot,
						  ilog2(BMM_GROUP_SIZE));
		map->groups += !err;
		return err ? err : BMM_GROUP;
	}
	err = static_call(bmm_vmap_pages)(addr, addr + PAGE_SIZE, map->prot,
					  pages);
	map->small += !err;
	return err ? err : 1;
}

/* Maps pages into at most one table. */
static int vmap_map_table(struct bmm_mapping *map, unsigned long addr,
			  unsigned long end, struct page **pages)
{
	unsigned long nr = (end - addr) >> PAGE_SHIFT;
	pte_t *pte = bmm_pagetable_pte(addr);
	long done = 0;

	if (!pte) {
		done = vmap_begin_table(map, addr, end, pages);
		if (done < 0 || done == nr)
			return min(done, 0L);
		pte = bmm_pagetable_pte(addr);
	}
	if (pte)
		done += vmap_fill_pages(map, pte + done, pages + done,
					nr - done);
	if (done == nr)
		return 0;
	map->odd = true;
	return static_call(bmm_vmap_pages)(addr + (done << PAGE_SHIFT), end,
					   map->prot, pages + done);
}

/**
 * bmm_vmap_map_pages() - map an array of pages
 * @map:   protection (present) and sizes of entries; what was done is added
 * @addr:  first address, page aligned
 * @end:   end of the range, page aligned, above @addr
 * @pages: the array
 *
 * Pages are mapped in the order of the array, so that on failure the range
 * holds what the kernel's own function would have left.
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_pages(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, struct page **pages)
{
	unsigned long next, nr;
	int err;

	for (; addr < end; addr = next) {
		nr = map->blocks ? bmm_vmap_blocks(addr, end, pages) : 0;
		if (nr) {
			next = addr + nr * PMD_SIZE;
			err = bmm_vmap_map_blocks(map, addr, nr, *pages);
		} else {
			next = pmd_addr_end(addr, end);
			err = vmap_map_table(map, addr, next, pages);
		}
		if (err)
			return err;
		pages += (next - addr) >> PAGE_SHIFT;
	}
	return 0;
}

/* Entries that are none get one physical range; how many did. */
static unsigned long vmap_fill_range(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr, unsigned long pfn)
{
	pteval_t value = bmm_pagetable_value(pfn_pte(pfn, map->prot));
	unsigned long i, n, grouped = 0;

	for (i = 0; i < nr; i += n, value += n * PAGE_SIZE) {
		if (!bmm_pagetable_none(pte + i))
			break;
		if (vmap_group_fits(map, pte + i, pfn + i, nr - i)) {
			vmap_set_group(map, pte + i, value);
			n = BMM_GROUP;
			grouped += n;
		} else {
			bmm_pagetable_set(pte + i, value);
			n = 1;
		}
	}
	map->small += i - grouped;
	bmm_pagetable_drain();
	return i;
}

/* The same for a physical range. */
static long vmap_begin_range_table(struct bmm_mapping *map, unsigned long addr,
				   unsigned long end, phys_addr_t phys,
				   unsigned int max_page_shift)
{
	bool group = map->blocks && end - addr >= BMM_GROUP_SIZE &&
		     IS_ALIGNED(addr | phys, BMM_GROUP_SIZE);
	unsigned long nr = group ? BMM_GROUP : 1;
	int err = static_call(bmm_vmap_range)(addr, addr + nr * PAGE_SIZE, phys,
					      map->prot, max_page_shift);

	if (err)
		return err;
	if (nr > 1)
		map->groups++;
	else
		map->small++;
	return nr;
}

/* Maps a physical range into at most one table. */
static int vmap_map_range_table(struct bmm_mapping *map, unsigned long addr,
				unsigned long end, phys_addr_t phys,
				unsigned int max_page_shift)
{
	unsigned long nr = (end - addr) >> PAGE_SHIFT;
	pte_t *pte = bmm_pagetable_pte(addr);
	long done = 0;

	if (!pte) {
		done = vmap_begin_range_table(map, addr, end, phys,
					      max_page_shift);
		if (done < 0 || done == nr)
			return min(done, 0L);
		pte = bmm_pagetable_pte(addr);
	}
	if (pte)
		done += vmap_fill_range(map, pte + done, nr - done,
					PHYS_PFN(phys) + done);
	if (done == nr)
		return 0;
	map->odd = true;
	done <<= PAGE_SHIFT;
	return static_call(bmm_vmap_range)(addr + done, end, phys + done,
					   map->prot, max_page_shift);
}

/**
 * bmm_vmap_map_range() - map one physical range
 * @map:            protection (present); what was done is added
 * @addr:           first address, page aligned
 * @end:            end of the range, page aligned, above @addr
 * @phys:           physical address for @addr, page aligned
 * @max_page_shift: largest entry that the caller allows
 *
 * The part that entries of PMD_SIZE can serve is the kernel's, in one piece.
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_range(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, phys_addr_t phys,
		       unsigned int max_page_shift)
{
	bool large = max_page_shift >= PMD_SHIFT && !((addr ^ phys) & ~PMD_MASK);
	unsigned long next;
	int err;

	map->blocks = BIT(max_page_shift) >= BMM_GROUP_SIZE;
	map->runs++;
	for (; addr < end; phys += next - addr, addr = next) {
		if (large && IS_ALIGNED(addr, PMD_SIZE) &&
		    end - addr >= PMD_SIZE) {
			next = ALIGN_DOWN(end, PMD_SIZE);
			map->leaves += (next - addr) >> PMD_SHIFT;
			err = static_call(bmm_vmap_range)(addr, next, phys,
							  map->prot,
							  max_page_shift);
		} else {
			next = pmd_addr_end(addr, end);
			err = vmap_map_range_table(map, addr, next, phys,
						   max_page_shift);
		}
		if (err)
			return err;
	}
	return 0;
}
