// SPDX-License-Identifier: GPL-2.0-only
/*
 * hotplug: memory becomes ordinary RAM, or is removed, in linear time.
 *
 * For every memory block that joins or leaves a zone, set_zone_contiguous()
 * walks the whole zone again to see if every pageblock in it is whole. For a
 * device of n blocks that makes n * n / 2 walks over a block. Here the kernel's
 * own check runs on the likeliest pageblocks first (hotplug_walk.c), and its
 * full walk only if they do not settle it.
 *
 * The function is not passed what has changed. Its two callers are: they are
 * hooked as well, and their arguments are kept while they run. Without them
 * there is one place less to check first.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/mmzone.h>
#include <linux/pageblock-flags.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "compat/compat.h"
#include "faults.h"
#include "hotplug_walk.h"
#include "prototype.h"
#include "trace.h"

enum {
	FALLBACK_OFF = BMM_OWN, /* switched off after the trampoline's check */
	FALLBACK_WALK, /* all that was checked was whole: the kernel walks */
};

/*
 * The change in progress. All changes of zones happen under the kernel's
 * mem_hotplug_lock, one at a time; should there ever be two, the second is not
 * recorded, and its walk is done without that knowledge.
 */
static struct task_struct *hotplug_task;
static struct zone *hotplug_zone;
static struct bmm_walk_change hotplug_change;

static bool hotplug_begin(struct zone *zone, unsigned long start_pfn,
			  unsigned long nr_pages, bool was_contiguous)
{
	bmm_path_enter(&bmm_hotplug_path);
	bmm_fault_delay();
	if (cmpxchg(&hotplug_task, NULL, current))
		return false;
	hotplug_zone = zone;
	hotplug_change.start = start_pfn;
	hotplug_change.end = start_pfn + nr_pages;
	hotplug_change.was_contiguous = was_contiguous;
	return true;
}

static void hotplug_end(bool began)
{
	if (began)
		smp_store_release(&hotplug_task, NULL);
	bmm_path_leave(&bmm_hotplug_path);
}

/* Neither empty nor beyond the zone's span, which the function takes for granted. */
bool bmm_walk_whole(struct zone *zone, unsigned long start, unsigned long end)
{
	return static_call(bmm_whole)(start, end, zone);
}

/*
 * One line for a walk of a millisecond or a change of a GiB: the blocks of
 * virtio-mem and of small machines are many.
 */
static void hotplug_log(struct zone *zone, const struct bmm_walk_change *change,
			u64 ns, int reason)
{
	unsigned long nr_pages = change->end - change->start;

	if (ns < NSEC_PER_MSEC && nr_pages < (1UL << 30) / PAGE_SIZE)
		return;
	pr_info_ratelimited(
		"hotplug: %lu PFNs from 0x%lx changed, node %d %s: %llu.%03llu ms, %s\n",
		nr_pages, change->start, zone_to_nid(zone), zone->name,
		ns / NSEC_PER_MSEC, ns / NSEC_PER_USEC % 1000,
		reason < 0 ? "served without a walk" : "the kernel walked");
}

/* Returns a reason why the kernel has to walk, or -1. */
static int hotplug_serve(struct zone *zone, const struct bmm_walk *walk,
			 const struct bmm_walk_change *change)
{
	enum bmm_walk_answer answer;

	if (READ_ONCE(bmm_hotplug_path.mode) == BMM_OFF)
		return FALLBACK_OFF;
	answer = bmm_walk_shortcut(walk, change);
	if (answer == BMM_WALK_UNKNOWN)
		return FALLBACK_WALK;
	if (answer == BMM_WALK_YES && !bmm_fault("wrong"))
		zone->contiguous = true;
	return -1;
}

/* Entered in place of set_zone_contiguous(). */
void bmm_hotplug_handler(struct zone *zone)
{
	const struct bmm_walk walk = {
		.zone = zone,
		.start = zone->zone_start_pfn,
		.end = zone_end_pfn(zone),
		.pageblock = pageblock_nr_pages,
	};
	struct bmm_walk_change change = {};
	u64 ns = ktime_get_mono_fast_ns();
	int reason;

	bmm_path_enter(&bmm_hotplug_path);
	if (READ_ONCE(hotplug_task) == current && hotplug_zone == zone)
		change = hotplug_change;
	reason = hotplug_serve(zone, &walk, &change);
	if (reason >= 0)
		static_call(bmm_hotplug_original)(zone);
	ns = ktime_get_mono_fast_ns() - ns;
	if (reason >= 0)
		bmm_path_count(&bmm_hotplug_path, reason, 1);
	else
		bmm_path_served(&bmm_hotplug_path, 0, ns);
	trace_hotplug(&change, &walk, ns,
		      reason < 0 ? "served" :
				   bmm_path_reason(&bmm_hotplug_path, reason));
	hotplug_log(zone, &change, ns, reason);
	bmm_path_leave(&bmm_hotplug_path);
}

/* Entered in place of move_pfn_range_to_zone(): the range joins the zone. */
void bmm_hotplug_grow_handler(struct zone *zone, unsigned long start_pfn,
			      unsigned long nr_pages, struct vmem_altmap *altmap,
			      int type BMM_GROW_ISOLATE)
{
	bool began = hotplug_begin(zone, start_pfn, nr_pages, false);

	static_call(bmm_hotplug_grow_original)(zone, start_pfn, nr_pages, altmap,
					       type BMM_GROW_ISOLATE_ARG);
	hotplug_end(began);
}

/* Entered in place of remove_pfn_range_from_zone(): the range leaves it. */
void bmm_hotplug_shrink_handler(struct zone *zone, unsigned long start_pfn,
				unsigned long nr_pages)
{
	bool began = hotplug_begin(zone, start_pfn, nr_pages, zone->contiguous);

	static_call(bmm_hotplug_shrink_original)(zone, start_pfn, nr_pages);
	hotplug_end(began);
}

struct bmm_path bmm_hotplug_path = {
	BMM_PATH_NAMED(hotplug),
	.hooks = {
		{ BMM_HOOK(hotplug) },
		{ BMM_HOOK(hotplug_grow) },
		{ BMM_HOOK(hotplug_shrink) },
	},
	.names[BMM_NS] = "ns",
	.names[FALLBACK_OFF] = "fallback_off",
	.names[FALLBACK_WALK] = "fallback_walk",
};
