/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether struct pages exist, for many pages: pfn_valid() reads the section of
 * each, which costs more than filling the entry. Here the sections seen last
 * are remembered for the length of a request.
 */
#ifndef BMM_VMAP_VALID_H
#define BMM_VMAP_VALID_H

#include <linux/mm.h>
#include <linux/mmzone.h>

#include "vmap_map.h"

/*
 * The struct pages of a section are contiguous and, as those of all sections
 * are, aligned to their size: the number of a page's section, by its address.
 */
#define BMM_MEMMAP_BYTES      (PAGES_PER_SECTION * sizeof(struct page))
#define bmm_vmap_number(page) ((uintptr_t)(page) / BMM_MEMMAP_BYTES)

/* Nothing is known: each slot has a number that belongs in another one. */
static __always_inline void bmm_vmap_known_init(struct bmm_mapping *map,
						unsigned long *known)
{
	unsigned int k;

#pragma GCC unroll 16
	for (k = 0; k < BMM_VMAP_KNOWN; k++)
		known[k] = k + 1;
	map->known = known;
}

/* Every PFN of the page's section has a struct page. Never NULL's section. */
static inline void bmm_vmap_remember(struct bmm_mapping *map,
				     const struct page *page)
{
	unsigned long nr = bmm_vmap_number(page);

	if (nr)
		map->known[nr % BMM_VMAP_KNOWN] = nr;
}

/* The section of a page, if its number is below @end. */
static __always_inline struct mem_section *
bmm_vmap_section(const struct page *page, unsigned long end)
{
	unsigned long nr = pfn_to_section_nr(page_to_pfn(page));
	struct mem_section *root;

	if (!page || nr >= end)
		return NULL;
	root = mem_section[SECTION_NR_TO_ROOT(nr)];
	return root ? root + (nr & SECTION_ROOT_MASK) : NULL;
}

/* Out of line: one page, or BMM_VMAP_AT_ONCE, of any section. */
bool bmm_vmap_ask(struct bmm_mapping *map, const struct page *page);
bool bmm_vmap_each_valid(struct bmm_mapping *map, struct page **pages);

static inline bool bmm_vmap_valid(struct bmm_mapping *map,
				  const struct page *page)
{
	unsigned long nr = bmm_vmap_number(page);

	return map->known[nr % BMM_VMAP_KNOWN] == nr || bmm_vmap_ask(map, page);
}

/*
 * Whether BMM_VMAP_AT_ONCE pages are in sections present at boot. The checks
 * are combined, so that no branch depends on how the sections are mixed.
 */
static inline bool bmm_vmap_all_early(struct bmm_mapping *map,
				      struct page **pages)
{
	unsigned long flags = SECTION_HAS_MEM_MAP | SECTION_IS_EARLY;
	unsigned long end = NR_MEM_SECTIONS, all = flags;
	struct mem_section *section;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++) {
		section = bmm_vmap_section(pages[k], end);
		if (!section)
			return false;
		all &= READ_ONCE(section->section_mem_map);
	}
	if (all != flags)
		return false;
#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++)
		bmm_vmap_remember(map, pages[k]);
	return true;
}

static inline bool bmm_vmap_all_known(const struct bmm_mapping *map,
				      struct page **pages)
{
	unsigned long differs = 0, nr;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++) {
		nr = bmm_vmap_number(pages[k]);
		differs |= map->known[nr % BMM_VMAP_KNOWN] ^ nr;
	}
	return !differs;
}

static inline bool bmm_vmap_all_valid(struct bmm_mapping *map,
				      struct page **pages)
{
	return bmm_vmap_all_known(map, pages) ||
	       bmm_vmap_all_early(map, pages) ||
	       bmm_vmap_each_valid(map, pages);
}

#endif
