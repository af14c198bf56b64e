// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device-private memory, set up as a GPU driver does: PFNs that no CPU can
 * access, with struct pages in ordinary memory. Nothing is ever allocated from
 * it.
 *
 * debugfs bulkmm_lab/bind	creates this many bytes of it
 *	   bulkmm_lab/unbind	removes it
 */
#include <linux/memremap.h>
#include <linux/mm.h>

#include "lab.h"

#ifdef CONFIG_DEVICE_PRIVATE

static struct dev_pagemap pgmap; /* mapped while .owner is set */

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

static void release(void)
{
	release_mem_region(pgmap.range.start, range_len(&pgmap.range));
	memset(&pgmap, 0, sizeof(pgmap));
}

static int bind_write(unsigned long bytes)
{
	struct resource *free;
	void *mapped;

	if (pgmap.owner)
		return -EBUSY;
	free = request_free_mem_region(&iomem_resource, bytes, "bulkmm_lab");
	if (IS_ERR(free))
		return PTR_ERR(free);
	pgmap.type = MEMORY_DEVICE_PRIVATE;
	pgmap.range.start = free->start;
	pgmap.range.end = free->end;
	pgmap.nr_range = 1;
	pgmap.ops = &ops;
	pgmap.owner = &pgmap;
	mapped = memremap_pages(&pgmap, numa_mem_id());
	if (IS_ERR(mapped))
		release();
	return PTR_ERR_OR_ZERO(mapped);
}

static int unbind_write(char *text)
{
	if (!pgmap.owner)
		return -ENODEV;
	memunmap_pages(&pgmap);
	release();
	return 0;
}

static void private_exit(void)
{
	unbind_write(NULL);
}

BMM_LAB_PART(private, NULL, NULL, private_exit, { "bind", .number = bind_write },
	     { "unbind", .write = unbind_write });
#endif
