// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps into a page table, entry after entry, without a descent for each: an
 * array of pages (vmap()), a physical range (ioremap()), or vmalloc()'s huge
 * pages that are contpte groups (arm64). PMD mappings of vmalloc() are left to
 * the original. It descends for each, which is little compared with clearing
 * and mapping 2 MiB: serving them was measured to cost more than it saved up to
 * some 100 MiB.
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
#include "vmap_map.h"
#include "vmap_valid.h"

#define AT_ONCE BMM_VMAP_AT_ONCE

/*
 * Has the kernel map what is left up to @end; 0 or its negative errno. For
 * pages of PAGE_SIZE, see paths.def for its function.
 */
int bmm_vmap_by_kernel(const struct bmm_mapping *map, unsigned long end)
{
	if (map->kind == BMM_VMAP_RANGE)
		return static_call(
			bmm_vmap_range_original)(map->addr, end, map->phys,
						 map->prot, map->shift);
#ifdef CONFIG_ARM64
	if (map->kind == BMM_VMAP_GROUPS)
		return static_call(
			bmm_vmap_huge_original)(map->addr, end, map->prot,
						map->pages, map->shift);
#endif
#ifdef CONFIG_CC_IS_GCC
	return static_call(bmm_vmap_pages_original)(map->addr, end, map->prot,
						    map->pages);
#else
	return static_call(bmm_vmap_pages_original)(map->addr, end, map->prot,
						    map->pages, PAGE_SHIFT);
#endif
}

static void vmap_advance(struct bmm_mapping *map, unsigned long nr)
{
	map->addr += nr * PAGE_SIZE;
	if (map->kind == BMM_VMAP_RANGE)
		map->phys += nr * PAGE_SIZE;
	else
		map->pages += nr;
}

/* The array starts with a group. */
static bool vmap_pages_group(struct page **pages)
{
	return *pages && pfn_valid(page_to_pfn(*pages)) &&
	       IS_ALIGNED(page_to_pfn(*pages), BMM_GROUP) &&
	       bmm_vmap_contiguous(pages, BMM_GROUP);
}

/* A group comes next, and its place in the table is aligned too. */
static bool vmap_group_first(const struct bmm_mapping *map, unsigned long end)
{
	if (BMM_GROUP == 1 || !map->blocks || end - map->addr < BMM_GROUP_SIZE ||
	    !IS_ALIGNED(map->addr, BMM_GROUP_SIZE))
		return false;
	if (map->kind == BMM_VMAP_PAGES)
		return vmap_pages_group(map->pages);
	return map->kind == BMM_VMAP_GROUPS ||
	       IS_ALIGNED(map->phys, BMM_GROUP_SIZE);
}

/*
 * A group may start here: enough entries are left, and entry and page are both
 * aligned to it.
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

static bool vmap_all_none(const pte_t *pte)
{
	pteval_t used = 0;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++)
		used |= bmm_pagetable_get(pte + k);
	return !used;
}

/* Sets AT_ONCE entries to consecutive pages if all of them are free. */
static bool vmap_set_line(pte_t *pte, pteval_t value)
{
	unsigned int k;

	if (!vmap_all_none(pte))
		return false;
#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++)
		bmm_pagetable_set(pte + k, value + k * PAGE_SIZE);
	return true;
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
	       vmap_group_fits(map, pte, page_to_pfn(*pages), nr) &&
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

	if (!bmm_vmap_valid(map, page) || !bmm_vmap_valid(map, page + nr - 1))
		return 0;
	for (i = 0; i < nr; i += AT_ONCE)
		if (!vmap_set_line(pte + i,
				   bmm_pagetable_entry(map->base, pfn + i)))
			break;
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

static unsigned long vmap_fill_pages(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr)
{
	unsigned long i, n, wanted, grouped = 0;
	struct page **pages = map->pages;

	for (i = 0; i < nr; i += n) {
		if (vmap_is_group(map, pte + i, pages + i, nr - i)) {
			n = BMM_GROUP;
			grouped += n;
			vmap_set_group(map, pte + i,
				       bmm_pagetable_entry(map->base,
							   page_to_pfn(
								   pages[i])));
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
	return i;
}

/* No group begins between here and AT_ONCE entries further. */
static bool vmap_line_begins(const pte_t *pte)
{
	return IS_ALIGNED((unsigned long)pte, AT_ONCE * sizeof(*pte));
}

/* An entry in use is unusual. */
static unsigned long vmap_fill_range(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr)
{
	unsigned long pfn = PHYS_PFN(map->phys), i, n, grouped = 0;
	pteval_t value = bmm_pagetable_value(pfn_pte(pfn, map->prot));

	for (i = 0; i < nr; i += n, value += n * PAGE_SIZE) {
		if (!bmm_pagetable_none(pte + i))
			break;
		if (vmap_group_fits(map, pte + i, pfn + i, nr - i)) {
			vmap_set_group(map, pte + i, value);
			n = BMM_GROUP;
			grouped += n;
		} else if (nr - i >= AT_ONCE && vmap_line_begins(pte + i) &&
			   vmap_set_line(pte + i, value)) {
			n = AT_ONCE;
		} else {
			bmm_pagetable_set(pte + i, value);
			n = 1;
		}
	}
	map->small += i - grouped;
	return i;
}

/*
 * Groups need not be contiguous. As in the kernel's range walker, only the
 * first entry of each is checked for being empty.
 */
static unsigned long vmap_fill_groups(struct bmm_mapping *map, pte_t *pte,
				      unsigned long nr)
{
	unsigned long pfn, i;

	for (i = 0; i < nr; i += BMM_GROUP) {
		pfn = page_to_pfn(map->pages[i]);
		if (!vmap_group_fits(map, pte + i, pfn, nr - i) ||
		    !bmm_pagetable_none(pte + i))
			break;
		vmap_set_group(map, pte + i,
			       bmm_pagetable_entry(map->base, pfn));
		map->runs++;
	}
	return i;
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long vmap_fill(struct bmm_mapping *map, pte_t *pte,
			       unsigned long nr)
{
	unsigned long n;

	if (map->kind == BMM_VMAP_PAGES)
		n = vmap_fill_pages(map, pte, nr);
	else if (map->kind == BMM_VMAP_RANGE)
		n = vmap_fill_range(map, pte, nr);
	else
		n = vmap_fill_groups(map, pte, nr);
	bmm_pagetable_drain();
	return n;
}

/*
 * Has the kernel allocate the next table, by mapping the first page or, so that
 * no group is split, the first group. Returns pages mapped, or an errno.
 */
static long vmap_begin_table(struct bmm_mapping *map, unsigned long end)
{
	bool group = vmap_group_first(map, end);
	int err;

	if (group)
		err = static_call(bmm_vmap_range_original)(
			map->addr, map->addr + BMM_GROUP_SIZE,
			bmm_vmap_phys(map), map->prot, ilog2(BMM_GROUP_SIZE));
	else
		err = bmm_vmap_by_kernel(map, map->addr + PAGE_SIZE);
	if (err)
		return err;
	map->runs += map->kind == BMM_VMAP_GROUPS;
	map->groups += group;
	map->small += !group;
	return group ? BMM_GROUP : 1;
}

/* Maps into at most one table. */
static int vmap_map_table(struct bmm_mapping *map, unsigned long end)
{
	pte_t *pte = bmm_pagetable_pte(map->addr);
	long done;
	int err;

	if (!pte) {
		done = vmap_begin_table(map, end);
		if (done < 0)
			return done;
		vmap_advance(map, done);
		if (map->addr == end)
			return 0;
		pte = bmm_pagetable_pte(map->addr);
	}
	if (pte)
		vmap_advance(map, vmap_fill(map, pte,
					    (end - map->addr) >> PAGE_SHIFT));
	if (map->addr == end)
		return 0;
	map->odd = true;
	err = bmm_vmap_by_kernel(map, end);
	vmap_advance(map, (end - map->addr) >> PAGE_SHIFT);
	return err;
}

/*
 * Maps up to @end, page aligned and not empty; groups are aligned. In order of
 * addresses, so that on failure the range holds what the original would have
 * left. Returns 0, or the negative errno of the original.
 */
int bmm_vmap_map(struct bmm_mapping *map, unsigned long end)
{
	unsigned long known[BMM_VMAP_KNOWN] __uninitialized;
	unsigned long nr;
	int err = 0;

	if (map->kind == BMM_VMAP_PAGES)
		bmm_vmap_known_init(map, known);
	map->base = bmm_pagetable_base(map->prot);
	map->runs = map->kind == BMM_VMAP_RANGE;
	while (!err && map->addr < end) {
		nr = map->blocks ? bmm_vmap_blocks(map, end) : 0;
		if (nr) {
			err = bmm_vmap_map_blocks(map, nr);
			vmap_advance(map, nr * (PMD_SIZE / PAGE_SIZE));
		} else {
			err = vmap_map_table(map, pmd_addr_end(map->addr, end));
		}
	}
	return err;
}
