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

#include "cmdline.h"
#include "pagetable.h"
#include "prototype.h"
#include "vmap.h"
#include "vmap_map.h"

#define PAGES_PER_BLOCK (PMD_SIZE / PAGE_SIZE)

BMM_FUNCTION(find_area, struct vm_struct *, const void *);
/* size, align, shift, flags, start, end, node, gfp, caller */
BMM_FUNCTION(get_area_node, struct vm_struct *, unsigned long, unsigned long,
	     unsigned long, unsigned long, unsigned long, unsigned long, int,
	     gfp_t, const void *);

DEFINE_STATIC_CALL_NULL(find_area, *(find_area_fn *)NULL);
DEFINE_STATIC_CALL_NULL(get_area_node, *(get_area_node_fn *)NULL);

/*
 * An operator who disables huge mappings of vmalloc() wants none of these
 * either: 1 if the command line says so, < 0 if unknown, which counts as yes.
 */
static int refused __ro_after_init;

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

static bool vmap_is_block(unsigned long addr, unsigned long end,
			  struct page **pages)
{
	return end - addr >= PMD_SIZE &&
	       pages[PAGES_PER_BLOCK - 1] == pages[0] + PAGES_PER_BLOCK - 1 &&
	       bmm_vmap_contiguous(pages, PAGES_PER_BLOCK) && vmap_vacant(addr);
}

/**
 * bmm_vmap_blocks() - how many PMD-sized blocks a range starts with
 * @addr:  its address
 * @end:   its end
 * @pages: its pages
 *
 * A block's pages are contiguous, its address and PFN are aligned; consecutive
 * blocks are contiguous too. A subsection is as large as a block: all of its
 * PFNs have a struct page, or none.
 *
 * Return: the number, 0 if there is none.
 */
unsigned long bmm_vmap_blocks(unsigned long addr, unsigned long end,
			      struct page **pages)
{
	struct page *page = pages[0];
	unsigned long nr = 0;

	if (!IS_ALIGNED(addr, PMD_SIZE) || !page ||
	    !IS_ALIGNED(page_to_pfn(page), PAGES_PER_BLOCK))
		return 0;
	while (pfn_valid(page_to_pfn(page)) && vmap_is_block(addr, end, pages)) {
		nr++;
		addr += PMD_SIZE;
		pages += PAGES_PER_BLOCK;
		page += PAGES_PER_BLOCK;
		if (addr == end || pages[0] != page)
			break;
	}
	return nr;
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

/**
 * bmm_vmap_map_blocks() - map blocks
 * @map:  protection; adds what was mapped
 * @addr: the first address
 * @nr:   number of blocks, from bmm_vmap_blocks()
 * @page: the first page
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_blocks(struct bmm_mapping *map, unsigned long addr,
			unsigned long nr, struct page *page)
{
	int err = static_call(bmm_vmap_range)(addr, addr + nr * PMD_SIZE,
					      page_to_phys(page), map->prot,
					      PMD_SHIFT);

	map->runs++;
	if (!err)
		vmap_count_leaves(map, addr, nr);
	return err;
}

/**
 * bmm_vmap_blocks_allowed() - whether the area at an address may have blocks
 * @addr: an address in it
 *
 * Only areas of vmap(), which are unmapped as a whole, and none at all if the
 * kernel may have been booted with nohugevmalloc. Not: the page-wise part of
 * vmalloc() (its caller did not ask for huge pages) and per-CPU memory, both
 * VM_ALLOC; sparse areas, where single pages are unmapped; vm_map_ram(), which
 * has no vm_struct.
 *
 * Return: true if it may.
 */
bool bmm_vmap_blocks_allowed(unsigned long addr)
{
	struct vm_struct *area;

	if (refused)
		return false;
	area = static_call(find_area)((void *)addr);
	return area && !(area->flags & (VM_ALLOC | VM_SPARSE | VM_IOREMAP));
}

/**
 * bmm_vmap_aligned_area() - allocate an area aligned for blocks or, if it is
 * smaller than one, for contpte groups
 * @size:   in bytes
 * @flags:  VM_* flags passed to vmap()
 * @caller: shown in /proc/vmallocinfo
 *
 * Return: the area, or NULL if the address space has none left, or blocks are
 * refused.
 */
struct vm_struct *bmm_vmap_aligned_area(unsigned long size, unsigned long flags,
					const void *caller)
{
	unsigned long align = size >= PMD_SIZE ? PMD_SIZE : BMM_GROUP_SIZE;

	if (refused)
		return NULL;
	return static_call(get_area_node)(size, align, PAGE_SHIFT, flags,
					  VMALLOC_START, VMALLOC_END,
					  NUMA_NO_NODE,
					  GFP_KERNEL | __GFP_NOWARN, caller);
}

/**
 * bmm_vmap_init() - read what the operator wants
 *
 * Once, in the task that loads the module: one that switches the path on later
 * may see another /proc, or none.
 */
void __init bmm_vmap_init(void)
{
	refused = bmm_cmdline_has("nohugevmalloc");
}

/**
 * bmm_vmap_block_prepare() - find the kernel's functions
 * @symbol: result: the one that is missing
 *
 * Return: 0 or a negative errno (bmm_function_entry()).
 */
int bmm_vmap_block_prepare(const char **symbol)
{
	long find, node;

	*symbol = "find_vm_area";
	find = bmm_function_entry(*symbol, find_area_prototype);
	if (IS_ERR_VALUE(find))
		return find;
	*symbol = "__get_vm_area_node";
	node = bmm_function_entry(*symbol, get_area_node_prototype);
	if (IS_ERR_VALUE(node))
		return node;
	if (refused > 0)
		pr_notice("vmap: nohugevmalloc: mode block maps as mode pte\n");
	if (refused < 0)
		pr_notice(
			"vmap: /proc/cmdline could not be read at load (%d): mode block maps as mode pte\n",
			refused);
	static_call_update(find_area, (void *)find);
	static_call_update(get_area_node, (void *)node);
	return 0;
}
