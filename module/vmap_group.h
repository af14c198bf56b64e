/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups of contiguous entries (contpte, arm64) in a page table. */
#ifndef BMM_VMAP_GROUP_H
#define BMM_VMAP_GROUP_H

#include <linux/align.h>
#include <linux/mm.h>

#include "pagetable.h"
#include "vmap_map.h"

/*
 * A group may start here: enough entries are left, and entry and page are both
 * aligned to it.
 */
static inline bool bmm_vmap_group_fits(const struct bmm_mapping *map,
				       const pte_t *pte, unsigned long pfn,
				       unsigned long nr)
{
	return BMM_GROUP > 1 && map->blocks && nr >= BMM_GROUP &&
	       IS_ALIGNED((unsigned long)pte, BMM_GROUP * sizeof(*pte)) &&
	       IS_ALIGNED(pfn, BMM_GROUP);
}

static inline void bmm_vmap_set_group(struct bmm_mapping *map, pte_t *pte,
				      pteval_t value)
{
	unsigned long i;

	value = bmm_pagetable_group(value);
	for (i = 0; i < BMM_GROUP; i++)
		bmm_pagetable_set(pte + i, value + i * PAGE_SIZE);
	map->groups++;
}

#endif
