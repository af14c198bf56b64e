// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps into a page table, entry after entry, without a descent for each.
 *
 * The kernel owns the tables: where one is missing, the original maps the first
 * page and allocates what that takes, and the rest is filled in here. Anything
 * unusual (an entry is already there, a page is NULL or has no struct page)
 * goes to the original from that entry on, so that its return value, its
 * warning and what it leaves behind are its own.
 */
#include <linux/align.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_group.h"
#include "vmap_map.h"
#include "vmap_valid.h"

#define AT_ONCE BMM_VMAP_AT_ONCE

/* The array starts with a group, and its place in the table is aligned too. */
static bool vmap_group_first(const struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	return BMM_GROUP > 1 && map->blocks && end - addr >= BMM_GROUP_SIZE &&
	       IS_ALIGNED(addr, BMM_GROUP_SIZE) && *pages &&
	       pfn_valid(page_to_pfn(*pages)) &&
	       IS_ALIGNED(page_to_pfn(*pages), BMM_GROUP) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP);
}

static bool vmap_all_none(const pte_t *pte)
{
	pteval_t used = 0;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++)
		used |= bmm_pagetable_get(pte + k);
	return !used;
}

static bool vmap_group_none(const pte_t *pte)
{
	unsigned long i;

	for (i = 0; i < BMM_GROUP; i++)
		if (!bmm_pagetable_none(pte + i))
			return false;
	return true;
}

/* The next pages of an array form a group, and its entries are free. */
static bool vmap_is_group(struct bmm_mapping *map, const pte_t *pte,
			  struct page **pages, unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks &&
	       bmm_vmap_group_fits(map, pte, page_to_pfn(*pages), nr) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP) &&
	       bmm_vmap_valid(map, *pages) && vmap_group_none(pte);
}

/* Counts runs: @nr pages continue the last run, or start another. */
static void vmap_follow(struct bmm_mapping *map, unsigned long pfn,
			unsigned long nr)
{
	map->runs += pfn != map->next;
	map->next = pfn + nr;
}

/* Fills one run of at most a subsection: it is valid if both ends are. */
static unsigned long vmap_fill_run(struct bmm_mapping *map, pte_t *pte,
				   struct page *page, unsigned long nr)
{
	unsigned long pfn = page_to_pfn(page), i;
	pteval_t base = map->base;
	unsigned int k;

	if (!bmm_vmap_valid(map, page) || !bmm_vmap_valid(map, page + nr - 1))
		return 0;
	for (i = 0; i < nr && vmap_all_none(pte + i); i += AT_ONCE) {
		base = bmm_pagetable_entry(map->base, pfn + i);
#pragma GCC unroll 8
		for (k = 0; k < AT_ONCE; k++)
			bmm_pagetable_set(pte + i + k, base + k * PAGE_SIZE);
	}
	vmap_follow(map, pfn, i);
	return i;
}

static bool vmap_fill_scattered(struct bmm_mapping *map, pte_t *pte,
				struct page **pages)
{
	unsigned long next = map->next, runs = 0, pfn;
	pteval_t base = map->base;
	unsigned int k;

	if (!vmap_all_none(pte) || !bmm_vmap_all_valid(map, pages))
		return false;
#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++) {
		pfn = page_to_pfn(pages[k]);
		bmm_pagetable_set(pte + k, bmm_pagetable_entry(base, pfn));
		runs += pfn != next;
		next = pfn + 1;
	}
	map->runs += runs;
	map->next = next;
	return true;
}

/* How many pages form one run, in steps of AT_ONCE. */
static unsigned long vmap_run(struct page **pages, unsigned long nr)
{
	struct page *page = pages[0];
	unsigned long n = 0;

	nr = min(nr, (unsigned long)PAGES_PER_SUBSECTION);
	while (n + AT_ONCE <= nr && bmm_vmap_follow(pages + n, page + n))
		n += AT_ONCE;
	return n;
}

/* Fills AT_ONCE entries, more for a run; 0 if something is unusual. */
static unsigned long vmap_fill_some(struct bmm_mapping *map, pte_t *pte,
				    struct page **pages, unsigned long nr)
{
	unsigned long n = vmap_run(pages, nr);

	if (n)
		return vmap_fill_run(map, pte, pages[0], n);
	return vmap_fill_scattered(map, pte, pages) ? AT_ONCE : 0;
}

static bool vmap_set_one(struct bmm_mapping *map, pte_t *pte, struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	if (!bmm_pagetable_none(pte) || !bmm_vmap_valid(map, page))
		return false;
	bmm_pagetable_set(pte, bmm_pagetable_entry(map->base, pfn));
	vmap_follow(map, pfn, 1);
	return true;
}

/* Fills @nr entries of PAGE_SIZE; fewer if something is unusual. */
static unsigned long vmap_fill_stretch(struct bmm_mapping *map, pte_t *pte,
				       struct page **pages, unsigned long nr)
{
	unsigned long i = 0, n = 1;

	for (; n && i + AT_ONCE <= nr; i += n)
		n = vmap_fill_some(map, pte + i, pages + i, nr - i);
	while (i < nr && vmap_set_one(map, pte + i, pages[i]))
		i++;
	return i;
}

/* How many of @nr entries precede the next place for a group. */
static unsigned long vmap_stretch(const struct bmm_mapping *map,
				  const pte_t *pte, unsigned long nr)
{
	unsigned long at = (unsigned long)pte / sizeof(*pte);

	if (BMM_GROUP == 1 || !map->blocks)
		return nr;
	return min(nr, BMM_GROUP - at % BMM_GROUP);
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long vmap_fill_pages(struct bmm_mapping *map, pte_t *pte,
				     struct page **pages, unsigned long nr)
{
	unsigned long i, n, wanted, grouped = 0;

	for (i = 0; i < nr; i += n) {
		if (vmap_is_group(map, pte + i, pages + i, nr - i)) {
			n = BMM_GROUP;
			grouped += n;
			bmm_vmap_set_group(
				map, pte + i,
				bmm_pagetable_entry(map->base,
						    page_to_pfn(pages[i])));
			vmap_follow(map, page_to_pfn(pages[i]), n);
			continue;
		}
		wanted = vmap_stretch(map, pte + i, nr - i);
		n = vmap_fill_stretch(map, pte + i, pages + i, wanted);
		if (n < wanted) {
			i += n;
			break;
		}
	}
	map->small += i - grouped;
	bmm_pagetable_drain();
	return i;
}

/*
 * Has the kernel allocate the table for @addr, by mapping the first page or, so
 * that no group is split, the first group. Returns pages mapped, or an errno.
 */
static long vmap_begin_table(struct bmm_mapping *map, unsigned long addr,
			     unsigned long end, struct page **pages)
{
	int err;

	if (vmap_group_first(map, addr, end, pages)) {
		err = static_call(
			bmm_vmap_range_original)(addr, addr + BMM_GROUP_SIZE,
						 page_to_phys(*pages), map->prot,
						 ilog2(BMM_GROUP_SIZE));
		map->groups += !err;
		return err ? err : BMM_GROUP;
	}
	err = bmm_vmap_pages_by_kernel(addr, addr + PAGE_SIZE, map->prot, pages);
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
	return bmm_vmap_pages_by_kernel(addr + (done << PAGE_SHIFT), end,
					map->prot, pages + done);
}

/*
 * Maps an array of pages from @addr to @end, page aligned and not empty. In
 * array order, so that on failure the range holds what the original would have
 * left. Returns 0, or the negative errno of the original.
 */
int bmm_vmap_map_pages(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, struct page **pages)
{
	unsigned long known[BMM_VMAP_KNOWN] __uninitialized;
	unsigned long next, nr;
	int err;

	bmm_vmap_known_init(map, known);
	map->base = bmm_pagetable_base(map->prot);
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
