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

/* A group comes next, and its place in the table is aligned too. */
static bool vmap_group_first(const struct bmm_mapping *map, unsigned long end)
{
	if (BMM_GROUP == 1 || !map->blocks || end - map->addr < BMM_GROUP_SIZE ||
	    !IS_ALIGNED(map->addr, BMM_GROUP_SIZE))
		return false;
	if (map->kind != BMM_VMAP_RANGE)
		return bmm_vmap_fits(map->pages, BMM_GROUP);
	return IS_ALIGNED(map->phys, BMM_GROUP_SIZE);
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

/* A line of entries may start here, and reaches into no place for a group. */
static bool vmap_line_fits(const pte_t *pte, unsigned long nr)
{
	return nr >= AT_ONCE &&
	       IS_ALIGNED((unsigned long)pte, AT_ONCE * sizeof(*pte));
}

/* @nr is a constant, here and below. */
static __always_inline bool vmap_all_none(const pte_t *pte, unsigned int nr)
{
	pteval_t used = 0;
	unsigned int k;

#pragma GCC unroll 16
	for (k = 0; k < nr; k++)
		used |= bmm_pagetable_get(pte + k);
	return !used;
}

/* Sets @nr entries to consecutive pages if all of them are free. */
static __always_inline bool vmap_set(pte_t *pte, pteval_t value, unsigned int nr)
{
	unsigned int k;

	if (!vmap_all_none(pte, nr))
		return false;
#pragma GCC unroll 16
	for (k = 0; k < nr; k++)
		bmm_pagetable_set(pte + k, value + k * PAGE_SIZE);
	return true;
}

/* vmap_set_run() where there are groups. */
static unsigned long vmap_set_groups(struct bmm_mapping *map, pte_t *pte,
				     unsigned long pfn, pteval_t value,
				     unsigned long nr)
{
	unsigned long i, n;
	bool set;

	for (i = 0; i < nr; i += n, value += n * PAGE_SIZE) {
		if (vmap_group_fits(map, pte + i, pfn + i, nr - i)) {
			n = BMM_GROUP;
			set = vmap_set(pte + i, bmm_pagetable_group(value),
				       BMM_GROUP);
			map->groups += set;
		} else if (vmap_line_fits(pte + i, nr - i)) {
			n = AT_ONCE;
			set = vmap_set(pte + i, value, AT_ONCE);
		} else {
			n = 1;
			set = vmap_set(pte + i, value, 1);
		}
		if (!set)
			break;
	}
	return i;
}

/*
 * Sets @nr entries to consecutive pages from @pfn on, the first of them to
 * @value; fewer if one is in use. Without groups, two loops with nothing else
 * in them: one loop for all takes 7 % longer (Emerald Rapids).
 */
static __always_inline unsigned long vmap_set_run(struct bmm_mapping *map,
						  pte_t *pte, unsigned long pfn,
						  pteval_t value,
						  unsigned long nr)
{
	unsigned long i;

	if (BMM_GROUP > 1)
		return vmap_set_groups(map, pte, pfn, value, nr);
	for (i = 0; i + AT_ONCE <= nr; i += AT_ONCE)
		if (!vmap_set(pte + i, value + i * PAGE_SIZE, AT_ONCE))
			return i;
	for (; i < nr; i++)
		if (!vmap_set(pte + i, value + i * PAGE_SIZE, 1))
			return i;
	return i;
}

/*
 * Fills one run of at most a subsection: it is valid if both ends are. It is
 * counted unless it continues the last one.
 */
static unsigned long vmap_fill_run(struct bmm_mapping *map, pte_t *pte,
				   struct page *page, unsigned long nr)
{
	unsigned long pfn = page_to_pfn(page), n;

	if (!vmap_valid(map, page) || !vmap_valid(map, page + nr - 1))
		return 0;
	n = vmap_set_run(map, pte, pfn, bmm_pagetable_entry(map->base, pfn), nr);
	if (n) {
		map->runs += pfn != map->next;
		map->next = pfn + n;
	}
	return n;
}

static unsigned long vmap_fill_scattered(struct bmm_mapping *map, pte_t *pte,
					 struct page **pages)
{
	unsigned long next = map->next, runs = 0, pfn;
	pteval_t base = map->base;
	unsigned int k;

	if (!vmap_all_none(pte, AT_ONCE) || !vmap_all_valid(map, pages))
		return 0;
#pragma GCC unroll 8
	for (k = 0; k < AT_ONCE; k++) {
		pfn = page_to_pfn(pages[k]);
		bmm_pagetable_set(pte + k, bmm_pagetable_entry(base, pfn));
		runs += pfn != next;
		next = pfn + 1;
	}
	map->runs += runs;
	map->next = next;
	return AT_ONCE;
}

/*
 * How many pages form one run, in steps of AT_ONCE if there are as many; 0 if
 * the first AT_ONCE do not.
 */
static unsigned long vmap_run(struct page **pages, unsigned long nr)
{
	struct page *page = pages[0];
	unsigned long n = 0;

	if (unlikely(nr < AT_ONCE)) {
		while (n < nr && pages[n] == page + n)
			n++;
		return n;
	}
	nr = min(nr, (unsigned long)PAGES_PER_SUBSECTION);
	while (n + AT_ONCE <= nr && bmm_vmap_follow(pages + n, page + n))
		n += AT_ONCE;
	return n;
}

/* How many of @nr entries to fill next: up to where a line may begin. */
static unsigned long vmap_next(const pte_t *pte, unsigned long nr)
{
	unsigned long odd = -((unsigned long)pte / sizeof(*pte)) % AT_ONCE;

	return BMM_GROUP > 1 && odd ? min(nr, odd) : nr;
}

/*
 * A group begins where a line may begin, and no run is cut within a table,
 * which is as large as a subsection: no group is missed.
 */
static unsigned long vmap_fill_pages(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr)
{
	struct page **pages = map->pages;
	unsigned long i, n, run;

	for (i = 0; i < nr; i += n) {
		run = vmap_run(pages + i, vmap_next(pte + i, nr - i));
		if (run)
			n = vmap_fill_run(map, pte + i, pages[i], run);
		else
			n = vmap_fill_scattered(map, pte + i, pages + i);
		if (!n)
			break;
	}
	return i;
}

static unsigned long vmap_fill_range(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr)
{
	unsigned long pfn = PHYS_PFN(map->phys);

	return vmap_set_run(map, pte, pfn,
			    bmm_pagetable_value(pfn_pte(pfn, map->prot)), nr);
}

/* Fills @nr entries of one table; fewer if something is unusual. */
static unsigned long vmap_fill(struct bmm_mapping *map, pte_t *pte,
			       unsigned long nr)
{
	unsigned long groups = map->groups, n;

	n = map->kind == BMM_VMAP_RANGE ? vmap_fill_range(map, pte, nr) :
					  vmap_fill_pages(map, pte, nr);
	map->small += n - (map->groups - groups) * BMM_GROUP;
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
	unsigned long known_sections[BMM_VMAP_KNOWN] __uninitialized;
	unsigned long nr;
	int err = 0;

	if (map->kind != BMM_VMAP_RANGE)
		vmap_known_init(map, known_sections);
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
