// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zones as the kernel sees them, including what none of its own files shows:
 * whether it considers a zone contiguous.
 */
#include <linux/memory_hotplug.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>

#include "lab.h"

/* "NODE ZONE START SPANNED PRESENT CONTIGUOUS", a line per zone with a span */
static void show_zone(struct seq_file *m, struct zone *zone)
{
	if (zone->spanned_pages)
		seq_printf(m, "%d %s %lu %lu %lu %d\n", zone_to_nid(zone),
			   zone->name, zone->zone_start_pfn, zone->spanned_pages,
			   zone->present_pages, zone->contiguous);
}

static int zones_show(struct seq_file *m)
{
	int nid, i;

	for_each_online_node(nid) for (i = 0; i < MAX_NR_ZONES; i++)
		show_zone(m, &NODE_DATA(nid)->node_zones[i]);
	return 0;
}

const struct bmm_lab_part bmm_lab_zones = {
	.files =
		(const struct bmm_lab_file[]){
			{ "zones", NULL, zones_show },
			{},
		},
};
