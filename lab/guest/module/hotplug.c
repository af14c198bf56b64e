// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory hotplug.
 *
 * debugfs bulkmm_lab/refuse makes it fail: "online N" refuses the N-th block
 * from now on that is to go online, as a driver may; "vmemmap N" has the N-th
 * request for memory that holds struct pages return -ENOMEM. Reading returns
 * how many events are left until then.
 *
 * debugfs bulkmm_lab/zones: zones as the kernel sees them, including what none
 * of its own files shows: whether it considers a zone contiguous.
 */
#include <linux/atomic.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>

#include "lab.h"

static atomic_t online_left, vmemmap_left;

static bool now(atomic_t *left)
{
	return atomic_read(left) > 0 && !atomic_dec_return(left);
}

static int memory_event(struct notifier_block *block, unsigned long event,
			void *arg)
{
	bool refused = event == MEM_GOING_ONLINE && now(&online_left);

	return refused ? NOTIFY_BAD : NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = memory_event };

static int populated(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (now(&vmemmap_left))
		regs_set_return_value(regs, -ENOMEM);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "vmemmap_populate",
	.handler = populated,
};

static int refuse_show(struct seq_file *m)
{
	seq_printf(m, "%d\n",
		   atomic_read(&online_left) + atomic_read(&vmemmap_left));
	return 0;
}

static int refuse_write(char *text)
{
	int n;

	if (sscanf(text, "online %d", &n) == 1)
		atomic_set(&online_left, n);
	else if (sscanf(text, "vmemmap %d", &n) == 1)
		atomic_set(&vmemmap_left, n);
	else
		return -EINVAL;
	return 0;
}

static int refuse_init(void)
{
	return register_memory_notifier(&notifier);
}

static void refuse_exit(void)
{
	unregister_memory_notifier(&notifier);
}

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

BMM_LAB_PART(refuse, &probe, refuse_init, refuse_exit,
	     { "refuse", .write = refuse_write, .show = refuse_show });
BMM_LAB_PART(zones, NULL, NULL, NULL, { "zones", .show = zones_show });
