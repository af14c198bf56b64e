// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmalloc() with huge pages that are contpte groups (arm64): one descent for
 * all groups of a table.
 *
 * PMD mappings are left to the original. It descends for each, which is little
 * compared with clearing and mapping 2 MiB: serving them was measured to cost
 * more than it saved up to some 100 MiB.
 */
#include <linux/log2.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_group.h"
#include "vmap_map.h"

/*
 * Maps the group that begins with @page, the rest of which follows it in
 * memory. As in the kernel's range walker, only its first entry is checked for
 * being empty. Returns false, with nothing done, if no group fits into the @nr
 * entries that are left.
 */
static bool vmap_map_group(struct bmm_mapping *map, pte_t *pte,
			   struct page *page, unsigned long nr)
{
	if (!bmm_vmap_group_fits(map, pte, page_to_pfn(page), nr) ||
	    !bmm_pagetable_none(pte))
		return false;
	bmm_vmap_set_group(map, pte,
			   bmm_pagetable_value(mk_pte(page, map->prot)));
	return true;
}

/* Maps groups into one table; returns the pages mapped or a negative errno. */
static long vmap_map_group_table(struct bmm_mapping *map, unsigned long addr,
				 unsigned long end, struct page **pages)
{
	pte_t *pte = bmm_pagetable_pte(addr);
	unsigned long n = 0, nr;
	int err;

	if (!pte) {
		err = static_call(
			bmm_vmap_range_original)(addr, addr + BMM_GROUP_SIZE,
						 page_to_phys(*pages), map->prot,
						 ilog2(BMM_GROUP_SIZE));
		map->runs += !err;
		map->groups += !err;
		return err ? err : BMM_GROUP;
	}
	nr = (pmd_addr_end(addr, end) - addr) >> PAGE_SHIFT;
	while (n < nr && vmap_map_group(map, pte + n, pages[n], nr - n)) {
		map->runs++;
		n += BMM_GROUP;
	}
	bmm_pagetable_drain();
	return n;
}

/*
 * Maps groups that need not be contiguous; addresses are aligned to a group,
 * and of its pages only the first is used. From a group that cannot be served
 * (something is mapped already), the original does the rest. Returns 0, or the
 * negative errno of the original.
 */
int bmm_vmap_map_groups(struct bmm_mapping *map, unsigned long addr,
			unsigned long end, struct page **pages)
{
	long n;

	map->blocks = true;
	for (; addr < end; addr += n << PAGE_SHIFT, pages += n) {
		n = vmap_map_group_table(map, addr, end, pages);
		if (n < 0)
			return n;
		if (n)
			continue;
		map->odd = true;
		return static_call(
			bmm_vmap_huge_original)(addr, end, map->prot, pages,
						ilog2(BMM_GROUP_SIZE));
	}
	return 0;
}
