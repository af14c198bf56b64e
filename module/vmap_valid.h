/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmap_valid.h - whether struct pages exist, for many pages
 *
 * pfn_valid() reads the section of each page, which costs more than filling the
 * entry. Here the sections seen last are remembered for the length of a
 * request, by their numbers, which follow from the addresses of struct pages.
 * Part of vmap_map.c, into whose loops it is inlined.
 */
#ifndef BMM_VMAP_VALID_H
#define BMM_VMAP_VALID_H

#include <linux/mmzone.h>
#include <linux/rcupdate.h>

#include "vmap_map.h"

#define vmap_number(page) ((uintptr_t)(page) / BMM_MEMMAP_BYTES)

/* Nothing is known: each slot has a number that belongs in another one. */
static __always_inline void vmap_known_init(struct bmm_mapping *map,
					    unsigned long *known_sections)
{
	unsigned int k;

#pragma GCC unroll 16
	for (k = 0; k < BMM_VMAP_KNOWN; k++)
		known_sections[k] = k + 1;
	map->known_sections = known_sections;
}

/* Every PFN of the page's section has a struct page. Never NULL's section. */
static inline void vmap_remember(struct bmm_mapping *map,
				 const struct page *page)
{
	unsigned long nr = vmap_number(page);

	if (nr)
		map->known_sections[nr % BMM_VMAP_KNOWN] = nr;
}

/* The section of a page, if its number is below @end. */
static __always_inline struct mem_section *vmap_section(const struct page *page,
							unsigned long end)
{
	unsigned long nr = pfn_to_section_nr(page_to_pfn(page));
	struct mem_section *root;

	if (!page || nr >= end)
		return NULL;
	root = mem_section[SECTION_NR_TO_ROOT(nr)];
	return root ? root + (nr & SECTION_ROOT_MASK) : NULL;
}

/* Memory added after boot may fill only some subsections, and may go away. */
static noinline bool vmap_ask_late(struct bmm_mapping *map,
				   const struct page *page,
				   struct mem_section *section)
{
	struct mem_section_usage *usage;
	bool valid, is_whole = false;

	rcu_read_lock_sched();
	valid = pfn_section_valid(section, page_to_pfn(page));
	usage = READ_ONCE(section->usage);
#ifdef CONFIG_SPARSEMEM_VMEMMAP
	is_whole = usage &&
		   bitmap_full(usage->subsection_map, SUBSECTIONS_PER_SECTION);
#endif
	rcu_read_unlock_sched();
	if (valid && is_whole)
		vmap_remember(map, page);
	return valid;
}

/* pfn_valid(), for the whole section of the page if possible. */
static noinline bool vmap_ask(struct bmm_mapping *map, const struct page *page)
{
	struct mem_section *section = vmap_section(page, NR_MEM_SECTIONS);

	if (!valid_section(section))
		return false;
	if (!early_section(section))
		return vmap_ask_late(map, page, section);
	vmap_remember(map, page);
	return true;
}

static inline bool vmap_valid(struct bmm_mapping *map, const struct page *page)
{
	unsigned long nr = vmap_number(page);

	return map->known_sections[nr % BMM_VMAP_KNOWN] == nr ||
	       vmap_ask(map, page);
}

/*
 * Whether BMM_VMAP_AT_ONCE pages are in sections present at boot. The checks
 * are combined, so that no branch depends on how the sections are mixed.
 */
static bool vmap_all_early(struct bmm_mapping *map, struct page **pages)
{
	unsigned long flags = SECTION_HAS_MEM_MAP | SECTION_IS_EARLY;
	unsigned long end = NR_MEM_SECTIONS, common_flags = flags;
	struct mem_section *section;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++) {
		section = vmap_section(pages[k], end);
		if (!section)
			return false;
		common_flags &= READ_ONCE(section->section_mem_map);
	}
	if (common_flags != flags)
		return false;
#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++)
		vmap_remember(map, pages[k]);
	return true;
}

static bool vmap_all_known(const struct bmm_mapping *map, struct page **pages)
{
	unsigned long differs = 0, nr;
	unsigned int k;

#pragma GCC unroll 8
	for (k = 0; k < BMM_VMAP_AT_ONCE; k++) {
		nr = vmap_number(pages[k]);
		differs |= map->known_sections[nr % BMM_VMAP_KNOWN] ^ nr;
	}
	return !differs;
}

static noinline bool vmap_each_valid(struct bmm_mapping *map,
				     struct page **pages)
{
	unsigned int k;

	for (k = 0; k < BMM_VMAP_AT_ONCE; k++)
		if (!vmap_valid(map, pages[k]))
			return false;
	return true;
}

static bool vmap_all_valid(struct bmm_mapping *map, struct page **pages)
{
	return vmap_all_known(map, pages) || vmap_all_early(map, pages) ||
	       vmap_each_valid(map, pages);
}

#endif
