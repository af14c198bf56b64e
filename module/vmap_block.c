// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMD mappings: where an array of pages has room for them, which areas may have
 * them, and aligned areas, without which there is no room.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "pagetable.h"
#include "prototype.h"
#include "symbols.h"
#include "vmap_map.h"

#define PAGES_PER_BLOCK (PMD_SIZE / PAGE_SIZE)

/* An operator who boots with nohugevmalloc wants none of these either. */
static bool blocks_refused;

/*
 * Whether nothing is mapped in the block at @addr. The kernel's range walker
 * would drop a table with entries in it where its page-wise one warns.
 */
static bool vmap_vacant(unsigned long addr)
{
	unsigned long i;
	pte_t *pte;

	switch (bmm_pagetable_walk(addr, &pte)) {
	case BMM_NOTHING:
		return true;
	case BMM_ENTRIES:
		break;
	default:
		return false;
	}
	for (i = 0; i < PAGES_PER_BLOCK; i++)
		if (!bmm_pagetable_none(pte + i))
			return false;
	return true;
}

/*
 * How many PMD-sized blocks an array starts with: each fits, and they are
 * contiguous.
 */
static unsigned long vmap_blocks(unsigned long addr, unsigned long end,
				 struct page **pages)
{
	struct page *page = pages[0];
	unsigned long nr = 0;

	while (end - addr >= PMD_SIZE && pages[0] == page &&
	       bmm_vmap_fits(pages, PAGES_PER_BLOCK) && vmap_vacant(addr)) {
		nr++;
		addr += PMD_SIZE;
		pages += PAGES_PER_BLOCK;
		page += PAGES_PER_BLOCK;
	}
	return nr;
}

/*
 * How many PMD-sized blocks come next. In a physical range the original maps
 * all of them in one piece.
 */
unsigned long bmm_vmap_blocks(const struct bmm_mapping *map, unsigned long end)
{
	if (map->shift < PMD_SHIFT || !IS_ALIGNED(map->addr, PMD_SIZE))
		return 0;
	if (map->kind == BMM_VMAP_PAGES)
		return vmap_blocks(map->addr, end, map->pages);
	return IS_ALIGNED(map->phys, PMD_SIZE) ? (end - map->addr) / PMD_SIZE :
						 0;
}

/*
 * The walker may have used small entries, where page attributes differ. PMD
 * mappings are side by side up to the end of their table.
 */
static void vmap_count_leaves(struct bmm_mapping *map, unsigned long addr,
			      unsigned long nr)
{
	const pmd_t *pmd = NULL;

	for (; nr; nr--, addr += PMD_SIZE) {
		if (pmd && !IS_ALIGNED(addr, PUD_SIZE) && pmd_leaf(pmd[1]))
			pmd++;
		else
			pmd = bmm_pagetable_leaf(addr);
		if (pmd)
			map->leaves++;
		else
			map->small += PAGES_PER_BLOCK;
	}
}

/*
 * Maps @nr blocks (bmm_vmap_blocks()); 0 or the original's negative errno. The
 * range walker may sleep (6.1 to 7.3), which 7.3's vmalloc() need not be
 * allowed to: arrays of pages have blocks only in areas of vmap().
 */
int bmm_vmap_map_blocks(struct bmm_mapping *map, unsigned long nr)
{
	int err = static_call(
		bmm_vmap_range_original)(map->addr, map->addr + nr * PMD_SIZE,
					 bmm_vmap_phys(map), map->prot,
					 map->shift);

	if (map->kind == BMM_VMAP_RANGE) {
		map->leaves += nr;
		return err;
	}
	map->runs++;
	if (!err)
		vmap_count_leaves(map, map->addr, nr);
	return err;
}

/*
 * Whether the area at an address may have blocks. Only areas of vmap(), which
 * are unmapped as a whole. Not: the page-wise part of vmalloc() (its caller did
 * not ask for huge pages) and per-CPU memory, both VM_ALLOC; sparse areas,
 * where single pages are unmapped; vm_map_ram(), which has no vm_struct.
 */
bool bmm_vmap_blocks_allowed(unsigned long addr)
{
	struct vm_struct *area;

	if (blocks_refused)
		return false;
	area = static_call(bmm_find_area)((void *)addr);
	return area && !(area->flags & (VM_ALLOC | VM_SPARSE | VM_IOREMAP));
}

/*
 * Allocates an area aligned for blocks or, if it is smaller than one, for
 * contpte groups; NULL if the address space has none left, or blocks are
 * refused.
 */
struct vm_struct *bmm_vmap_aligned_area(unsigned long size, unsigned long flags,
					const void *caller)
{
	unsigned long align = size >= PMD_SIZE ? PMD_SIZE : BMM_GROUP_SIZE;

	if (blocks_refused)
		return NULL;
	/* As get_vm_area_caller() calls it (6.1 to 7.3), with an alignment. */
	return static_call(bmm_get_area)(size, align, PAGE_SHIFT, flags,
					 VMALLOC_START, VMALLOC_END,
					 NUMA_NO_NODE,
					 GFP_KERNEL | __GFP_NOWARN, caller);
}

/*
 * mm/vmalloc.c: nohugevmalloc clears vmap_allow_huge before anything can be
 * loaded (6.1 to 7.3). If it cannot be found, that counts as refused. Clang
 * keeps the variable's negation, and inlines get_vm_area_caller(): areas stay
 * as they are.
 */
void bmm_vmap_block_prepare(void)
{
	long allowed = bmm_symbol_data("vmap_allow_huge");
	const char *why = NULL;

	if (IS_ENABLED(CONFIG_CC_IS_CLANG))
		why = "the kernel is built by Clang";
	else if (IS_ERR_VALUE(allowed))
		why = "no symbol vmap_allow_huge";
	else if (!*(const bool *)allowed)
		why = "nohugevmalloc";
	blocks_refused = why;
	if (blocks_refused)
		pr_notice("vmap: %s: mode block maps as mode pte\n", why);
}
