// SPDX-License-Identifier: GPL-2.0-only
/* What vmap_valid.h leaves to be asked: a section that is not remembered. */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/rcupdate.h>

#include "vmap_valid.h"

/* Memory added after boot may fill only some subsections, and may go away. */
static noinline bool vmap_ask_late(struct bmm_mapping *map,
				   const struct page *page,
				   struct mem_section *section)
{
	struct mem_section_usage *usage;
	bool valid, whole = false;

	rcu_read_lock_sched();
	valid = pfn_section_valid(section, page_to_pfn(page));
	usage = READ_ONCE(section->usage);
#ifdef CONFIG_SPARSEMEM_VMEMMAP
	whole = usage &&
		bitmap_full(usage->subsection_map, SUBSECTIONS_PER_SECTION);
#endif
	rcu_read_unlock_sched();
	if (valid && whole)
		bmm_vmap_remember(map, page);
	return valid;
}

/* pfn_valid(), for the whole section of the page if possible. */
noinline bool bmm_vmap_ask(struct bmm_mapping *map, const struct page *page)
{
	struct mem_section *section = bmm_vmap_section(page, NR_MEM_SECTIONS);

	if (!valid_section(section))
		return false;
	if (!early_section(section))
		return vmap_ask_late(map, page, section);
	bmm_vmap_remember(map, page);
	return true;
}

noinline bool bmm_vmap_each_valid(struct bmm_mapping *map, struct page **pages)
{
	unsigned int k;

	for (k = 0; k < BMM_VMAP_AT_ONCE; k++)
		if (!bmm_vmap_valid(map, pages[k]))
			return false;
	return true;
}
