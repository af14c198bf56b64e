// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zones as the kernel sees them, including what none of its own files shows:
 * whether it considers a zone contiguous.
 */
#include <linux/memory_hotplug.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/seq_file.h>

#include "lab.h"

/* "NODE ZONE START SPANNED PRESENT CONTIGUOUS", a line per zone with a span */
static void show_zone(struct seq_file *m, struct zone *zone)
{
	if (zone->spanned_pages)
		seq_printf(m, "%d %s %lu %lu %lu %d\n", zone_to_nid(zone),
			   zone->name, zone->zone_start_pfn, zone->spanned_pages,
			   zone->present_pages, zone->contiguous);
}

static int zones_show(struct seq_file *m, void *unused)
{
	int nid, i;

	for_each_online_node(nid) for (i = 0; i < MAX_NR_ZONES; i++)
		show_zone(m, &NODE_DATA(nid)->node_zones[i]);
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(zones);

void bmm_zones_init(struct dentry *dir)
{
	debugfs_create_file("zones", 0400, dir, NULL, &zones_fops);
}
