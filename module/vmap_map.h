/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals of the vmap path: the kernel's functions, and one request. */
#ifndef BMM_VMAP_MAP_H
#define BMM_VMAP_MAP_H

#include <linux/mm.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "prototype.h"

/* The kernel's function for pages of PAGE_SIZE; see paths.def for its name. */
#ifdef CONFIG_CC_IS_GCC
#define bmm_vmap_pages_by_kernel(addr, end, prot, pages) \
	static_call(bmm_vmap_pages_original)(addr, end, prot, pages)
#else
#define bmm_vmap_pages_by_kernel(addr, end, prot, pages) \
	static_call(bmm_vmap_pages_original)(addr, end, prot, pages, PAGE_SHIFT)
#endif

#define BMM_VMAP_KNOWN 16 /* sections: two cache lines to fill per call */

/**
 * struct bmm_mapping - one request, and its result
 * @prot:   protection of every page
 * @blocks: entries larger than a page may be used where they fit
 * @runs:   physically contiguous runs; a single page is one
 * @small:  entries of PAGE_SIZE
 * @groups: contpte groups (arm64)
 * @leaves: entries of PMD_SIZE
 * @odd:    something was left that only the original can handle
 * @timed:  how many requests its time stands for, 0: none
 * @begun:  when it began
 * @base:   an entry without its PFN
 * @next:   the PFN that would continue the last run
 * @known:  numbers of some sections where every PFN has a struct page, each in
 *          the slot of its low bits
 */
struct bmm_mapping {
	pgprot_t prot;
	bool blocks;
	bool odd;
	unsigned int timed;
	u64 begun;
	unsigned long runs;
	unsigned long small;
	unsigned long groups;
	unsigned long leaves;
	pteval_t base;
	unsigned long next;
	unsigned long *known;
};

#define BMM_VMAP_AT_ONCE 8 /* entries of a cache line, on most CPUs */

/*
 * Whether the next pages are contiguous from @page on: their struct pages are.
 * Compare and branch fuse to one instruction a page; combining would take two.
 */
static inline bool bmm_vmap_follow(struct page **pages, struct page *page)
{
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++)
		if (pages[k] != page + k)
			return false;
	return true;
}

/* Whether @nr pages, a multiple of BMM_VMAP_AT_ONCE, form one run. */
static inline bool bmm_vmap_contiguous(struct page **pages, unsigned long nr)
{
	struct page *page = pages[0];
	unsigned long i = 0;

	while (i < nr && bmm_vmap_follow(pages + i, page + i))
		i += BMM_VMAP_AT_ONCE;
	return i == nr;
}

int bmm_vmap_map_pages(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, struct page **pages);
int bmm_vmap_map_range(struct bmm_mapping *map, unsigned long addr,
		       unsigned long end, phys_addr_t phys,
		       unsigned int max_page_shift);

unsigned long bmm_vmap_blocks(unsigned long addr, unsigned long end,
			      struct page **pages);
int bmm_vmap_map_blocks(struct bmm_mapping *map, unsigned long addr,
			unsigned long nr, struct page *page);
bool bmm_vmap_blocks_allowed(unsigned long addr);
int bmm_vmap_map_groups(struct bmm_mapping *map, unsigned long addr,
			unsigned long end, struct page **pages);
void bmm_vmap_block_prepare(void);
struct vm_struct *bmm_vmap_aligned_area(unsigned long size, unsigned long flags,
					const void *caller);

#endif
