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
#include "hotplug.h"
#include "hotplug_walk.h"
#include "prototype.h"

#define WHOLE_SYMBOL "__pageblock_pfn_to_page"

enum reason {
	REASON_OFF,  /* switched off after the trampoline's check */
	REASON_WALK, /* all that was checked was whole: the kernel walks */
};

BMM_FUNCTION(bmm_whole, struct page *, unsigned long, unsigned long,
	     struct zone *);
BMM_FUNCTION(bmm_walk, void, struct zone *);
BMM_FUNCTION(bmm_shrink, void, struct zone *, unsigned long, unsigned long);
static_assert(__same_type(bmm_hotplug_handler, bmm_walk_fn));
static_assert(__same_type(bmm_hotplug_grow_handler, bmm_grow_fn));
static_assert(__same_type(bmm_hotplug_shrink_handler, bmm_shrink_fn));

DEFINE_STATIC_CALL_NULL(bmm_hotplug_whole, *(bmm_whole_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_hotplug_walk, *(bmm_walk_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_hotplug_grow, *(bmm_grow_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_hotplug_shrink, *(bmm_shrink_fn *)NULL);

unsigned long bmm_hotplug_threshold = BMM_HOOK_PASS;
unsigned long bmm_hotplug_grow_threshold = BMM_HOOK_PASS;
unsigned long bmm_hotplug_shrink_threshold = BMM_HOOK_PASS;

/*
 * The change in progress. All changes of zones happen under the kernel's
 * mem_hotplug_lock, one at a time; should there ever be two, the second is not
 * recorded, and its walk is done without that knowledge.
 */
static struct task_struct *changer;
static struct zone *changed;
static struct bmm_walk_change change;

static bool hotplug_begin(struct zone *zone, unsigned long start_pfn,
			  unsigned long nr_pages, bool stays)
{
	if (cmpxchg(&changer, NULL, current))
		return false;
	changed = zone;
	change.start = start_pfn;
	change.end = start_pfn + nr_pages;
	change.stays = stays;
	return true;
}

static void hotplug_end(bool began)
{
	if (began)
		smp_store_release(&changer, NULL);
}

static bool hotplug_whole(void *zone, unsigned long start, unsigned long end)
{
	return static_call(bmm_hotplug_whole)(start, end, zone);
}

static enum bmm_walk_answer hotplug_answer(struct zone *zone)
{
	const struct bmm_walk_change none = {};
	struct bmm_walk walk = {
		.start = zone->zone_start_pfn,
		.end = zone_end_pfn(zone),
		.pageblock = pageblock_nr_pages,
		.whole = hotplug_whole,
		.zone = zone,
	};
	bool ours = READ_ONCE(changer) == current && changed == zone;

	return bmm_walk_shortcut(&walk, ours ? &change : &none);
}

/* Test builds: runs the kernel's walk too, and uses its answer. */
static void hotplug_check(struct zone *zone, enum bmm_walk_answer answer)
{
	bool was = zone->contiguous;

	if (bmm_fault("wrong"))
		answer = answer == BMM_WALK_NO ? BMM_WALK_YES : BMM_WALK_NO;
	static_call(bmm_hotplug_walk)(zone);
	if (!was)
		bmm_fault_checked(zone->contiguous == (answer == BMM_WALK_YES));
}

static void hotplug_serve(struct zone *zone)
{
	u64 begun = ktime_get_mono_fast_ns();
	enum bmm_walk_answer answer = hotplug_answer(zone);

	if (answer == BMM_WALK_UNKNOWN) {
		bmm_path_fallback(&bmm_hotplug, REASON_WALK);
		static_call(bmm_hotplug_walk)(zone);
		return;
	}
	bmm_path_served(&bmm_hotplug, 0, ktime_get_mono_fast_ns() - begun);
	if (bmm_fault("check") || bmm_fault("wrong"))
		hotplug_check(zone, answer);
	else if (answer == BMM_WALK_YES)
		zone->contiguous = true;
}

/* Entered in place of set_zone_contiguous(). */
void bmm_hotplug_handler(struct zone *zone)
{
	bmm_path_enter(&bmm_hotplug);
	if (READ_ONCE(bmm_hotplug.mode) == BMM_OFF) {
		bmm_path_fallback(&bmm_hotplug, REASON_OFF);
		static_call(bmm_hotplug_walk)(zone);
	} else {
		hotplug_serve(zone);
	}
	bmm_path_leave(&bmm_hotplug);
}

/* Entered in place of move_pfn_range_to_zone(): the range joins the zone. */
void bmm_hotplug_grow_handler(struct zone *zone, unsigned long start_pfn,
			      unsigned long nr_pages, struct vmem_altmap *altmap,
			      int type BMM_GROW_ISOLATE)
{
	bool began;

	bmm_path_enter(&bmm_hotplug);
	began = hotplug_begin(zone, start_pfn, nr_pages, false);
	bmm_fault_delay();
	static_call(bmm_hotplug_grow)(zone, start_pfn, nr_pages, altmap,
				      type BMM_GROW_ISOLATE_ARG);
	hotplug_end(began);
	bmm_path_leave(&bmm_hotplug);
}

/* Entered in place of remove_pfn_range_from_zone(): the range leaves it. */
void bmm_hotplug_shrink_handler(struct zone *zone, unsigned long start_pfn,
				unsigned long nr_pages)
{
	bool began;

	bmm_path_enter(&bmm_hotplug);
	began = hotplug_begin(zone, start_pfn, nr_pages, zone->contiguous);
	bmm_fault_delay();
	static_call(bmm_hotplug_shrink)(zone, start_pfn, nr_pages);
	hotplug_end(began);
	bmm_path_leave(&bmm_hotplug);
}

static void hotplug_set_walk(unsigned long address)
{
	static_call_update(bmm_hotplug_walk, (void *)address);
}

static void hotplug_set_grow(unsigned long address)
{
	static_call_update(bmm_hotplug_grow, (void *)address);
}

static void hotplug_set_shrink(unsigned long address)
{
	static_call_update(bmm_hotplug_shrink, (void *)address);
}

static int hotplug_prepare(const char **symbol)
{
	long whole;

	if (!IS_ENABLED(CONFIG_MEMORY_HOTPLUG))
		return -EOPNOTSUPP;
	whole = bmm_function_entry(WHOLE_SYMBOL, bmm_whole_prototype);
	if (IS_ERR_VALUE(whole)) {
		*symbol = WHOLE_SYMBOL;
		return whole;
	}
	static_call_update(bmm_hotplug_whole, (void *)whole);
	return 0;
}

static const char *const modes[] = { "off", "on", NULL };

struct bmm_path bmm_hotplug = {
	.name = "hotplug",
	.modes = modes,
	.prepare = hotplug_prepare,
	.hooks = {
		{
			.symbol = "set_zone_contiguous",
			.prototype = bmm_walk_prototype,
			.trampoline = bmm_hotplug_trampoline,
			.threshold = &bmm_hotplug_threshold,
			.set_original = hotplug_set_walk,
		},
		{
			.symbol = "move_pfn_range_to_zone",
			.prototype = bmm_grow_prototype,
			.trampoline = bmm_hotplug_grow_trampoline,
			.threshold = &bmm_hotplug_grow_threshold,
			.set_original = hotplug_set_grow,
		},
		{
			.symbol = "remove_pfn_range_from_zone",
			.prototype = bmm_shrink_prototype,
			.trampoline = bmm_hotplug_shrink_trampoline,
			.threshold = &bmm_hotplug_shrink_threshold,
			.set_original = hotplug_set_shrink,
		},
	},
	.reasons = {
		[REASON_OFF] = "off",
		[REASON_WALK] = "walk",
	},
};
