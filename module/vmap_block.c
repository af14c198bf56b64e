// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries of PMD_SIZE: where an array of pages has room for them, who may have
 * them, and aligned areas, without which there is no room.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/vmalloc.h>

#include "cmdline.h"
#include "symbols.h"
#include "vmap_map.h"
#include "x86/pagetable.h"

#define PAGES_PER_BLOCK (PMD_SIZE / PAGE_SIZE)
#define AT_ONCE		8

typedef struct vm_struct *find_area_fn(const void *addr);
typedef int pmd_set_huge_fn(pmd_t *pmd, phys_addr_t phys, pgprot_t prot);
typedef struct vm_struct *
get_area_node_fn(unsigned long size, unsigned long align, unsigned long shift,
		 unsigned long flags, unsigned long start, unsigned long end,
		 int node, gfp_t gfp, const void *caller);

DEFINE_STATIC_CALL_NULL(find_area, *(find_area_fn *)NULL);
DEFINE_STATIC_CALL_NULL(set_leaf, *(pmd_set_huge_fn *)NULL);
DEFINE_STATIC_CALL_NULL(get_area_node, *(get_area_node_fn *)NULL);

/* An operator who wants no huge mappings of vmalloc() wants none of these. */
static bool refused __read_mostly;

/* The struct pages of a run lie side by side: differences, gathered. */
static bool contiguous(struct page **pages)
{
	uintptr_t differs = 0;
	struct page *page = pages[0];
	unsigned long i, k;

	for (i = 0; i < PAGES_PER_BLOCK && !differs; i += AT_ONCE)
		for (k = i; k < i + AT_ONCE; k++)
			differs |= (uintptr_t)pages[k] ^ (uintptr_t)(page + k);
	return !differs;
}

/*
 * Nothing is mapped in the block at @addr. The kernel's range walker would
 * drop a table with entries in it where its page-wise one warns.
 */
static bool vacant(unsigned long addr)
{
	unsigned int level;
	pte_t *pte = bmm_pagetable_walk(addr, &level);
	unsigned long i;

	if (!pte)
		return true;
	if (level != PG_LEVEL_4K)
		return false;
	for (i = 0; i < PAGES_PER_BLOCK; i++)
		if (!bmm_pagetable_none(pte + i))
			return false;
	return true;
}

static bool is_block(unsigned long addr, unsigned long end, struct page **pages)
{
	return end - addr >= PMD_SIZE &&
	       pages[PAGES_PER_BLOCK - 1] == pages[0] + PAGES_PER_BLOCK - 1 &&
	       contiguous(pages) && vacant(addr);
}

/**
 * bmm_vmap_blocks() - how many blocks of PMD_SIZE a range begins with
 * @addr:  its address
 * @end:   its end
 * @pages: its pages
 *
 * A block's pages are contiguous and its address and PFN aligned; from block
 * to block they are contiguous too. A subsection is as large as a block: it
 * has a struct page for all of its PFNs or for none.
 *
 * Return: the number, 0 if there is none.
 */
unsigned long bmm_vmap_blocks(unsigned long addr, unsigned long end,
			      struct page **pages)
{
	struct page *page = pages[0];
	unsigned long nr = 0;

	BUILD_BUG_ON(PAGES_PER_SUBSECTION != PAGES_PER_BLOCK);
	if (!IS_ALIGNED(addr, PMD_SIZE) || !page ||
	    !IS_ALIGNED(page_to_pfn(page), PAGES_PER_BLOCK))
		return 0;
	while (pfn_valid(page_to_pfn(page)) && is_block(addr, end, pages)) {
		nr++;
		addr += PMD_SIZE;
		pages += PAGES_PER_BLOCK;
		page += PAGES_PER_BLOCK;
		if (addr == end || pages[0] != page)
			break;
	}
	return nr;
}

/* The walker may have taken small entries: page attributes that differ. */
static void count_leaves(unsigned long addr, unsigned long nr,
			 struct bmm_vmap_count *count)
{
	for (; nr; nr--, addr += PMD_SIZE) {
		if (bmm_pagetable_leaf(addr))
			count->blocks++;
		else
			count->small += PAGES_PER_BLOCK;
	}
}

/**
 * bmm_vmap_map_blocks() - map blocks
 * @addr:  the first address
 * @nr:    how many, as bmm_vmap_blocks() said
 * @prot:  of every page
 * @page:  the first page
 * @count: what was done is added to it
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_blocks(unsigned long addr, unsigned long nr, pgprot_t prot,
			struct page *page, struct bmm_vmap_count *count)
{
	int err = static_call(bmm_vmap_range)(addr, addr + nr * PMD_SIZE,
					      page_to_phys(page), prot,
					      PMD_SHIFT);

	count->runs++;
	if (!err)
		count_leaves(addr, nr, count);
	return err;
}

/**
 * bmm_vmap_blocks_allowed() - may the area at an address have blocks
 * @addr: an address in it
 *
 * Only what vmap() made, which is unmapped as a whole, and none at all on a
 * kernel booted with nohugevmalloc. Not: the page-wise part
 * of vmalloc() (its caller did not ask for huge pages) and per-CPU memory, both
 * VM_ALLOC; sparse areas, of which single pages are unmapped; vm_map_ram(),
 * which has no vm_struct.
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

/*
 * Sets the blocks that follow one just set in the same table, without a walk;
 * how many. One that is not vacant, or that may not be a leaf, ends it.
 */
static unsigned long set_leaves(pmd_t *pmd, unsigned long addr,
				unsigned long end, pgprot_t prot,
				struct page **pages)
{
	unsigned long n = 0;

	for (addr += PMD_SIZE; addr < end && addr & ~PUD_MASK;
	     addr += PMD_SIZE) {
		pages += PAGES_PER_BLOCK;
		if (!pmd_none(pmdp_get(++pmd)) ||
		    !IS_ALIGNED(page_to_pfn(*pages), PAGES_PER_BLOCK) ||
		    !static_call(set_leaf)(pmd, page_to_phys(*pages), prot))
			break;
		n++;
	}
	return n;
}

/**
 * bmm_vmap_map_huge() - map blocks that need not be contiguous
 * @addr:  the first address
 * @end:   end of the range
 * @prot:  of every page
 * @pages: the array, PMD_SIZE / PAGE_SIZE entries for each block; of these
 *         the first counts
 * @count: what was done is added to it
 *
 * Return: 0, or the negative errno of the kernel's own function.
 */
int bmm_vmap_map_huge(unsigned long addr, unsigned long end, pgprot_t prot,
		      struct page **pages, struct bmm_vmap_count *count)
{
	unsigned long n;
	pmd_t *pmd;
	int err;

	for (; addr < end; addr += n * PMD_SIZE, pages += n * PAGES_PER_BLOCK) {
		err = static_call(bmm_vmap_range)(addr, addr + PMD_SIZE,
						  page_to_phys(*pages), prot,
						  PMD_SHIFT);
		if (err)
			return err;
		count->runs++;
		pmd = bmm_pagetable_leaf(addr);
		n = 1;
		if (!pmd) {
			count->small += PAGES_PER_BLOCK;
			continue;
		}
		n += set_leaves(pmd, addr, end, prot, pages);
		count->runs += n - 1;
		count->blocks += n;
	}
	return 0;
}

/**
 * bmm_vmap_aligned_area() - an area whose first address is aligned for blocks
 * @size:   in bytes
 * @flags:  VM_* as vmap() was told
 * @caller: whom to name in /proc/vmallocinfo
 *
 * Return: the area, or NULL if the address space has none left.
 */
struct vm_struct *bmm_vmap_aligned_area(unsigned long size, unsigned long flags,
					const void *caller)
{
	return static_call(get_area_node)(size, PMD_SIZE, PAGE_SHIFT, flags,
					  VMALLOC_START, VMALLOC_END,
					  NUMA_NO_NODE,
					  GFP_KERNEL | __GFP_NOWARN, caller);
}

/**
 * bmm_vmap_block_prepare() - find the kernel's functions
 * @symbol: names the one that is missing
 *
 * Return: 0 or a negative errno (bmm_symbol_entry()).
 */
int bmm_vmap_block_prepare(const char **symbol)
{
	long find, leaf, node;

	find = bmm_symbol_entry(*symbol = "find_vm_area");
	if (IS_ERR_VALUE(find))
		return find;
	leaf = bmm_symbol_entry(*symbol = "pmd_set_huge");
	if (IS_ERR_VALUE(leaf))
		return leaf;
	node = bmm_symbol_entry(*symbol = "__get_vm_area_node");
	if (IS_ERR_VALUE(node))
		return node;
	refused = bmm_cmdline_has("nohugevmalloc");
	if (refused)
		pr_notice("vmap: nohugevmalloc: mode block maps as mode pte\n");
	static_call_update(find_area, (void *)find);
	static_call_update(set_leaf, (void *)leaf);
	static_call_update(get_area_node, (void *)node);
	return 0;
}
