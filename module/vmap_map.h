/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals of the vmap path: the kernel's functions, and one request. */
#ifndef BMM_VMAP_MAP_H
#define BMM_VMAP_MAP_H

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "prototype.h"

#define BMM_VMAP_KNOWN 16 /* sections: two cache lines to fill per call */

/*
 * Of struct pages of a section: they are contiguous and, as those of all
 * sections are, aligned to their size.
 */
#define BMM_MEMMAP_BYTES (PAGES_PER_SECTION * sizeof(struct page))

enum bmm_vmap_kind {
	BMM_VMAP_PAGES,	 /* an array of pages */
	BMM_VMAP_RANGE,	 /* a physical range */
	BMM_VMAP_GROUPS, /* pages that vmalloc() has by contpte groups (arm64) */
};

/**
 * struct bmm_mapping - one request, and its result
 * @kind:   what is mapped
 * @addr:   the next address to map, page aligned
 * @pages:  the pages from there on, or
 * @phys:   of a range, the physical address
 * @shift:  log2 of the largest entry that may be used
 * @prot:   protection of every page
 * @blocks: entries larger than a page may be used where they fit
 * @runs:   physically contiguous runs; a single page is one
 * @small:  entries of PAGE_SIZE
 * @groups: contpte groups (arm64)
 * @leaves: entries of PMD_SIZE
 * @odd:    something was left that only the original can handle
 * @base:   an entry without its PFN
 * @next:   the PFN that would continue the last run
 * @known_sections:  numbers of some sections where every PFN has a struct page,
 * each in the slot of its low bits
 */
struct bmm_mapping {
	enum bmm_vmap_kind kind;
	unsigned int shift;
	unsigned long addr;
	union {
		struct page **pages;
		phys_addr_t phys;
	};
	pgprot_t prot;
	bool blocks;
	bool odd;
	unsigned long runs;
	unsigned long small;
	unsigned long groups;
	unsigned long leaves;
	pteval_t base;
	unsigned long next;
	unsigned long *known_sections;
};

/* The next physical address to map. */
static inline phys_addr_t bmm_vmap_phys(const struct bmm_mapping *map)
{
	return map->kind == BMM_VMAP_RANGE ? map->phys :
					     page_to_phys(*map->pages);
}

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

/*
 * Whether an array starts with @nr pages, a power of two, that one entry or
 * group can map: contiguous, and aligned to that. A subsection is no smaller:
 * all of its PFNs have a struct page, or none.
 */
static inline bool bmm_vmap_fits(struct page **pages, unsigned long nr)
{
	struct page *page = pages[0];
	unsigned long i = 0;

	if (!page || pages[nr - 1] != page + nr - 1 ||
	    !IS_ALIGNED(page_to_pfn(page), nr) || !pfn_valid(page_to_pfn(page)))
		return false;
	while (i < nr && bmm_vmap_follow(pages + i, page + i))
		i += BMM_VMAP_AT_ONCE;
	return i == nr;
}

int bmm_vmap_by_kernel(const struct bmm_mapping *map, unsigned long end);
int bmm_vmap_map(struct bmm_mapping *map, unsigned long end);

unsigned long bmm_vmap_blocks(const struct bmm_mapping *map, unsigned long end);
int bmm_vmap_map_blocks(struct bmm_mapping *map, unsigned long nr);
bool bmm_vmap_blocks_allowed(unsigned long addr);
void bmm_vmap_block_prepare(void);
struct vm_struct *bmm_vmap_aligned_area(unsigned long size, unsigned long flags,
					const void *caller);

#endif
