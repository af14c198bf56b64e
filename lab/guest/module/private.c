// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device-private memory, set up as a GPU driver does: PFNs that no CPU can
 * access, with struct pages in ordinary memory. Nothing is ever allocated from
 * it.
 *
 * debugfs bulkmm_lab/bind	creates this many bytes of it, beside what there
 * is bulkmm_lab/unbind	removes what was created last
 */
#include <linux/memremap.h>
#include <linux/mm.h>

#include "lab.h"

#ifdef CONFIG_DEVICE_PRIVATE

static struct dev_pagemap pgmaps[16];
static unsigned int many; /* of them are mapped, the first */

static vm_fault_t migrate_to_ram(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

/* Before 6.19, .page_free, of a page. */
#ifndef BMM_HAVE_FOLIO_FREE
#define folio_free page_free
#define folio	   page
#endif
static void forget(struct folio *freed)
{
}

static const struct dev_pagemap_ops ops = {
	.folio_free = forget,
	.migrate_to_ram = migrate_to_ram,
};

static void release(struct dev_pagemap *pgmap)
{
	release_mem_region(pgmap->range.start, range_len(&pgmap->range));
	memset(pgmap, 0, sizeof(*pgmap));
}

static int bind_write(unsigned long bytes)
{
	struct dev_pagemap *pgmap = &pgmaps[many];
	struct resource *free;
	void *mapped;

	if (many == ARRAY_SIZE(pgmaps))
		return -EBUSY;
	free = request_free_mem_region(&iomem_resource, bytes, "bulkmm_lab");
	if (IS_ERR(free))
		return PTR_ERR(free);
	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->range.start = free->start;
	pgmap->range.end = free->end;
	pgmap->nr_range = 1;
	pgmap->ops = &ops;
	pgmap->owner = pgmap;
	mapped = memremap_pages(pgmap, numa_mem_id());
	if (IS_ERR(mapped)) {
		release(pgmap);
		return PTR_ERR(mapped);
	}
	many++;
	return 0;
}

static int unbind_write(char *text)
{
	if (!many)
		return -ENODEV;
	many--;
	memunmap_pages(&pgmaps[many]);
	release(&pgmaps[many]);
	return 0;
}

static void private_exit(void)
{
	while (!unbind_write(NULL))
		;
}

BMM_LAB_PART(private, NULL, NULL, private_exit, { "bind", .number = bind_write },
	     { "unbind", .write = unbind_write });
#endif
