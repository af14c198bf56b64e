// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: struct pages of device memory, by the range.
 *
 * memmap_init_zone_device() builds every struct page of a device from nothing.
 * Here the kernel's own function builds the first few units, bmm_learn() takes
 * their layout and proves it on them, and the rest is stamped. What a struct
 * page holds, and how many tails carry compound data, is nowhere coded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/ktime.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/page_ref.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/static_call.h>

#include "../core/learn.h"
#include "../core/turn.h"
#include "compat/compat.h"
#include "faults.h"
#include "memmap.h"
#include "symbols.h"
#include "trace.h"

enum reason {
	REASON_OFF,	   /* the path is switched off */
	REASON_SMALL,	   /* learning would cost more than stamping saves */
	REASON_TRACEPOINT, /* page_ref_set is traced: stamping would hide it */
	REASON_LAYOUT,	   /* units are not all alike, or the last one is cut */
	REASON_UNVERIFIED, /* the learned units contradict each other */
	REASON_NOMEM,	   /* no memory for the images */
	REASON_INVALID,	   /* the original refuses or ignores it */
};

static unsigned long memmap_min_pages = PAGES_PER_SECTION;
module_param(memmap_min_pages, ulong, 0644);
MODULE_PARM_DESC(
	memmap_min_pages,
	"memmap: smallest range that is stamped, in 4 KiB pages (default: one section, 32768 = 128 MiB on x86-64)");

DEFINE_STATIC_CALL_NULL(bmm_memmap_original, memmap_init_zone_device);
DEFINE_STATIC_CALL_NULL(bmm_pageblock, *(bmm_pageblock_fn *)NULL);

unsigned long bmm_memmap_threshold = BMM_HOOK_PASS;

/*
 * struct bringup - one request, as the original would see it
 * @zone, @start_pfn, @pgmap: its arguments
 * @pfn:   first PFN whose struct page is built (behind an altmap, if any)
 * @end:   one past the last
 * @order: compound order; a unit is 1 << order PFNs
 * @units: units in the range
 * @learn: units the original builds
 * @geometry: how the units lie in the memmap
 */
struct bringup {
	struct zone *zone;
	struct dev_pagemap *pgmap;
	unsigned long start_pfn;
	unsigned long pfn;
	unsigned long end;
	unsigned int order;
	unsigned long units;
	unsigned long learn;
	struct bmm_geometry geometry;
};

static bool early(unsigned long pfn)
{
	return early_section(__pfn_to_section(pfn));
}

/*
 * Struct pages that exist in the unit at @pfn. With optimised vmemmap the
 * tails beyond the reserved ones share pages and are not written; an early
 * section keeps its full boot memmap (see section_activate()).
 */
static unsigned long unit_records(const struct bringup *b, unsigned long pfn)
{
	struct vmem_altmap *altmap = pgmap_altmap(b->pgmap);

	if (early(pfn) || !vmemmap_can_optimize(altmap, b->pgmap))
		return 1UL << b->order;
	return VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page));
}

/* One geometry serves only if the sections agree on what a unit is. */
static bool sections_agree(const struct bringup *b)
{
	unsigned long pfn;

	for (pfn = ALIGN(b->pfn + 1, PAGES_PER_SECTION); pfn < b->end;
	     pfn += PAGES_PER_SECTION)
		if (early(pfn) != early(b->pfn))
			return false;
	return true;
}

/* Returns a reason to leave the request to the original, or -1. */
static int survey(struct bringup *b, unsigned long nr_pages)
{
	struct vmem_altmap *altmap;

	if (!b->pgmap || !nr_pages || zone_idx(b->zone) != ZONE_DEVICE)
		return REASON_INVALID;

	altmap = pgmap_altmap(b->pgmap);
	b->pfn = altmap ? altmap->base_pfn + vmem_altmap_offset(altmap) :
			  b->start_pfn;
	b->end = b->start_pfn + nr_pages;
	if (b->end <= b->pfn)
		return REASON_INVALID;
	if (b->end - b->pfn < READ_ONCE(memmap_min_pages))
		return REASON_SMALL;

	/* Order 0: a pageblock to learn from costs nothing. */
	b->order = b->pgmap->vmemmap_shift;
	b->units = (b->end - b->pfn) >> b->order;
	b->learn = b->order ? BMM_LEARN_UNITS : pageblock_nr_pages;
	if (b->units <= b->learn)
		return REASON_SMALL;
	if (((b->end - b->pfn) & ((1UL << b->order) - 1)) || !sections_agree(b))
		return REASON_LAYOUT;

	b->geometry.record = sizeof(struct page);
	b->geometry.records = unit_records(b, b->pfn);
	b->geometry.stride = sizeof(struct page) << b->order;
	return -1;
}

static void *first_page(const struct bringup *b)
{
	return pfn_to_page(b->pfn);
}

/* Runs the kernel's own function from the start of the range up to @end. */
static void original(const struct bringup *b, unsigned long end)
{
	static_call(bmm_memmap_original)(b->zone, b->start_pfn,
					 end - b->start_pfn, b->pgmap);
}

static unsigned long learned_end(const struct bringup *b)
{
	return b->pfn + (b->learn << b->order);
}

static u64 stamped_bytes(const struct bringup *b, unsigned long units)
{
	return (u64)units * b->geometry.records * b->geometry.record;
}

/*
 * Units are written at most a section at a time, each part by the backend that
 * the chooser names. The task may be preempted anywhere, and migrate: a context
 * switch drains the CPU it leaves.
 */
static void stamp_units(const struct bringup *b, struct bmm_layout *layout)
{
	unsigned long step = max(PAGES_PER_SECTION >> b->order, 1UL);
	size_t whole = stamped_bytes(b, b->units - b->learn);
	size_t per_unit = stamped_bytes(b, 1), bytes;
	int node = zone_to_nid(b->zone);
	struct bmm_turn turn;
	unsigned long unit, n;

	for (unit = b->learn; unit < b->units; unit += n) {
		bytes = bmm_turn_begin(&turn, BMM_STAMP, whole,
				       (b->units - unit) * per_unit, node);
		n = clamp(bytes / per_unit, 1UL, min(step, b->units - unit));
		bmm_layout_stamp(layout, turn.backend, first_page(b), unit, n);
		bmm_turn_end(&turn, n * per_unit);
		bmm_fault_delay();
		cond_resched();
	}
}

/* The drained struct pages may be read now; the kernel's function does. */
static void set_pageblocks(const struct bringup *b)
{
	unsigned long pfn = pageblock_align(learned_end(b));

	for (; pfn < b->end; pfn += pageblock_nr_pages) {
		static_call(bmm_pageblock)(
			bmm_pageblock_args(pfn_to_page(pfn), MIGRATE_MOVABLE));
		if (IS_ALIGNED(pfn, PAGES_PER_SECTION))
			cond_resched();
	}
}

/* A test build spoils what was learned, so that verification must refuse. */
static void spoil(const struct bringup *b)
{
	if (bmm_fault("unverified"))
		((u8 *)pfn_to_page(learned_end(b) - 1))[8] ^= 0x10;
}

static void account(const struct bringup *b, u64 ns)
{
	u64 bytes = stamped_bytes(b, b->units - b->learn);
	const struct bmm_backend *backend = bmm_backend_serving(
		BMM_STAMP, bytes, zone_to_nid(b->zone));

	bmm_path_served(&bmm_memmap, bytes, ns);
	trace_memmap(b->pfn, b->end - b->pfn, b->order, bytes, ns,
		     backend->name);
}

/* Serves the whole request, or nothing and returns the reason. */
static int by_the_range(const struct bringup *b)
{
	struct bmm_layout *layout __free(kfree) = NULL;
	u64 begin = ktime_get_ns();

	if (!bmm_fault("nomem"))
		layout = kmalloc(sizeof(*layout), GFP_KERNEL | __GFP_NOWARN);
	if (!layout)
		return REASON_NOMEM;

	original(b, learned_end(b));
	spoil(b);
	if (bmm_learn(layout, first_page(b), &b->geometry, b->learn)) {
		pr_warn("memmap: PFN 0x%lx: struct pages do not follow one layout (record %zu), original used\n",
			b->pfn, layout->differs);
		return REASON_UNVERIFIED;
	}
	stamp_units(b, layout);
	set_pageblocks(b);
	account(b, ktime_get_ns() - begin);
	return -1;
}

/* One line for what an operator should know; off and small are ordinary. */
static void say(const struct bringup *b, int reason)
{
	static const char *const why[] = {
		[REASON_TRACEPOINT] = "page_ref_set is being traced",
		[REASON_LAYOUT] = "its units are not all alike",
		[REASON_NOMEM] = "no memory to learn",
		[REASON_INVALID] = NULL,
	};

	if (why[reason])
		pr_notice("memmap: PFN 0x%lx: %s, original used\n",
			  b->start_pfn, why[reason]);
}

static bool page_refs_traced(void)
{
	return page_ref_tracepoint_active(page_ref_set) ||
	       bmm_fault("tracepoint");
}

static int serve(struct bringup *b, unsigned long nr_pages)
{
	int reason;

	if (READ_ONCE(bmm_memmap.mode) == BMM_OFF)
		return REASON_OFF;
	reason = survey(b, nr_pages);
	if (reason < 0 && page_refs_traced())
		reason = REASON_TRACEPOINT;
	if (reason < 0)
		reason = by_the_range(b);
	return reason;
}

/* Entered from the trampoline in place of memmap_init_zone_device(). */
void bmm_memmap_handler(struct zone *zone, unsigned long start_pfn,
			unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	struct bringup b = {
		.zone = zone,
		.pgmap = pgmap,
		.start_pfn = start_pfn,
	};
	int reason;

	bmm_path_enter(&bmm_memmap);
	reason = serve(&b, nr_pages);
	if (reason >= 0) {
		bmm_path_fallback(&bmm_memmap, reason);
		say(&b, reason);
		static_call(bmm_memmap_original)(zone, start_pfn, nr_pages,
						 pgmap);
	}
	bmm_path_leave(&bmm_memmap);
}

static void set_original(unsigned long address)
{
	static_call_update(bmm_memmap_original, (void *)address);
}

/*
 * Kernels whose struct pages this path may not or cannot predict: shadow
 * memory that follows each page, page words that change from section to
 * section, and pageblocks whose type is not MIGRATE_MOVABLE throughout.
 */
static bool config_rules_out(void)
{
	return IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN) ||
	       !IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) ||
	       IS_ENABLED(CONFIG_KEXEC_HANDOVER) || sizeof(struct page) % 8 ||
	       sizeof(struct page) < BMM_RECORD_MIN ||
	       sizeof(struct page) > BMM_RECORD_MAX;
}

static int prepare(const char **symbol)
{
	long pageblock;

	if (config_rules_out())
		return -EOPNOTSUPP;
	pageblock = bmm_symbol_entry(BMM_PAGEBLOCK_SYMBOL);
	if (IS_ERR_VALUE(pageblock)) {
		*symbol = BMM_PAGEBLOCK_SYMBOL;
		return pageblock;
	}
	static_call_update(bmm_pageblock, (void *)pageblock);
	return 0;
}

static const char *const modes[] = { "off", "on", NULL };

struct bmm_path bmm_memmap = {
	.name = "memmap",
	.modes = modes,
	.prepare = prepare,
	.backends = { { "backend", BMM_STAMP } },
	.hooks = { {
		.symbol = "memmap_init_zone_device",
		.trampoline = bmm_memmap_trampoline,
		.threshold = &bmm_memmap_threshold,
		.set_original = set_original,
	} },
	.reasons = {
		[REASON_OFF] = "off",
		[REASON_SMALL] = "small",
		[REASON_TRACEPOINT] = "tracepoint",
		[REASON_LAYOUT] = "layout",
		[REASON_UNVERIFIED] = "unverified",
		[REASON_NOMEM] = "nomem",
		[REASON_INVALID] = "invalid",
	},
};
