// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps a physical range (ioremap()), entry after entry. As for arrays
 * (vmap_map.c), the kernel owns the tables and does whatever is unusual.
 */
#include <linux/align.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_group.h"
#include "vmap_map.h"

/* Maps a physical range up to an entry in use; returns how many were set. */
static unsigned long vmap_fill_range(struct bmm_mapping *map, pte_t *pte,
				     unsigned long nr, unsigned long pfn)
{
	pteval_t value = bmm_pagetable_value(pfn_pte(pfn, map->prot));
	unsigned long i, n, grouped = 0;

	for (i = 0; i < nr; i += n, value += n * PAGE_SIZE) {
		if (!bmm_pagetable_none(pte + i))
			break;
		if (bmm_vmap_group_fits(map, pte + i, pfn + i, nr - i)) {
			bmm_vmap_set_group(map, pte + i, value);
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

/* As vmap_begin_table() does for an array, for a physical range. */
static long vmap_begin_range_table(struct bmm_mapping *map, unsigned long addr,
				   unsigned long end, phys_addr_t phys,
				   unsigned int max_page_shift)
{
	bool group = map->blocks && end - addr >= BMM_GROUP_SIZE &&
		     IS_ALIGNED(addr | phys, BMM_GROUP_SIZE);
	unsigned long nr = group ? BMM_GROUP : 1;
	int err = static_call(
		bmm_vmap_range_original)(addr, addr + nr * PAGE_SIZE, phys,
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
	return static_call(bmm_vmap_range_original)(addr + done, end,
						    phys + done, map->prot,
						    max_page_shift);
}

/*
 * Maps one physical range, page aligned and not empty, with entries of at most
 * 1 << @max_page_shift bytes. The original maps the part that PMD mappings can
 * serve, in one piece. Returns 0, or the negative errno of the original.
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
			err = static_call(bmm_vmap_range_original)(
				addr, next, phys, map->prot, max_page_shift);
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
