// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: struct pages of device memory, initialised in ranges.
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

#include "../core/drain.h"
#include "../core/learn.h"
#include "compat/compat.h"
#include "crew.h"
#include "faults.h"
#include "memmap.h"
#include "picks.h"
#include "prototype.h"
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

enum {
	MEMMAP_SHARED_BYTES = BMM_OWN, /* stamped by others than the caller */
};

/*
 * Below, struct pages that were zeroed a moment ago are still in the cache,
 * where the original is as fast as a stamp that bypasses it: Zen 5 gains 2 %
 * at four sections, and loses 11 % at two, 27 % at one.
 */
static unsigned long memmap_min_pages = 4 * PAGES_PER_SECTION;
module_param(memmap_min_pages, ulong, 0644);
MODULE_PARM_DESC(
	memmap_min_pages,
	"memmap: smallest range that is stamped, in 4 KiB pages (default: four sections, 131072 = 512 MiB on x86-64)");

/*
 * Units to stamp that pay for one learned, itself included: of 1 GiB behind an
 * altmap, seven with two learned were even with the original (Zen 5).
 */
#define MEMMAP_WORTH 4

BMM_FUNCTION(bmm_memmap, void, struct zone *, unsigned long, unsigned long,
	     struct dev_pagemap *);
static_assert(__same_type(bmm_memmap_handler, bmm_memmap_fn));
DEFINE_STATIC_CALL_NULL(bmm_memmap_original, *(bmm_memmap_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_pageblock, *(bmm_pageblock_fn *)NULL);

unsigned long bmm_memmap_threshold = BMM_HOOK_PASS;

/*
 * struct bringup - one request, as the original would see it
 * @zone, @start_pfn, @pgmap: its arguments
 * @pfn:   first PFN whose struct page is built (behind an altmap, if any)
 * @end:   one past the last
 * @order: compound order; a unit is 1 << order PFNs
 * @units: units in the range
 * @learn: units at its start that the original builds
 * @last:  units at its end that the original builds, too
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
	unsigned long last;
	struct bmm_geometry geometry;
};

static bool memmap_early(unsigned long pfn)
{
	return early_section(__pfn_to_section(pfn));
}

/*
 * Struct pages that exist in the unit at @pfn. With optimised vmemmap the
 * tails beyond the reserved ones share pages and are not written; an early
 * section keeps its full boot memmap (see section_activate()).
 */
static unsigned long memmap_unit_records(const struct bringup *b,
					 unsigned long pfn)
{
	struct vmem_altmap *altmap = pgmap_altmap(b->pgmap);

	if (memmap_early(pfn) || !vmemmap_can_optimize(altmap, b->pgmap))
		return 1UL << b->order;
	return VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page));
}

/*
 * One geometry serves only if the sections agree on what a unit is: all are
 * whole where the vmemmap is not optimised.
 */
static bool memmap_sections_agree(const struct bringup *b)
{
	unsigned long pfn;

	if (!vmemmap_can_optimize(pgmap_altmap(b->pgmap), b->pgmap))
		return true;
	for (pfn = ALIGN(b->pfn + 1, PAGES_PER_SECTION); pfn < b->end;
	     pfn += PAGES_PER_SECTION)
		if (memmap_early(pfn) != memmap_early(b->pfn))
			return false;
	return true;
}

/*
 * What the original is to build. Order 0: a pageblock to learn from costs
 * nothing. Of units as long as sections two are many struct pages, and each
 * one more is one less to stamp. The last one proves what lies between; with
 * an altmap the original begins where that says, and cannot build it alone.
 */
static void memmap_divide(struct bringup *b)
{
	b->last = !pgmap_altmap(b->pgmap);
	b->learn = BMM_LEARN_UNITS;
	if (!b->order)
		b->learn = pageblock_nr_pages;
	else if (1UL << b->order >= PAGES_PER_SECTION)
		b->learn = 2;
}

/* Returns a reason to leave the request to the original, or -1. */
static int memmap_survey(struct bringup *b, unsigned long nr_pages)
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

	b->order = b->pgmap->vmemmap_shift;
	b->units = (b->end - b->pfn) >> b->order;
	memmap_divide(b);
	if (b->units < MEMMAP_WORTH * (b->learn + b->last))
		return REASON_SMALL;
	if (((b->end - b->pfn) & ((1UL << b->order) - 1)) ||
	    !memmap_sections_agree(b))
		return REASON_LAYOUT;

	b->geometry.record = sizeof(struct page);
	b->geometry.records = memmap_unit_records(b, b->pfn);
	b->geometry.stride = sizeof(struct page) << b->order;
	return -1;
}

static void *memmap_first_page(const struct bringup *b)
{
	return pfn_to_page(b->pfn);
}

/* Runs the kernel's own function from the start of the range up to @end. */
static void memmap_original(const struct bringup *b, unsigned long end)
{
	static_call(bmm_memmap_original)(b->zone, b->start_pfn,
					 end - b->start_pfn, b->pgmap);
}

static void memmap_original_last(const struct bringup *b)
{
	unsigned long nr = b->last << b->order;

	if (nr)
		static_call(bmm_memmap_original)(b->zone, b->end - nr, nr,
						 b->pgmap);
}

static unsigned long memmap_learned_end(const struct bringup *b)
{
	return b->pfn + (b->learn << b->order);
}

static u64 memmap_bytes(const struct bringup *b, unsigned long units)
{
	return (u64)units * b->geometry.records * b->geometry.record;
}

/*
 * Device memory stores at another rate than ordinary memory of its node: the
 * struct pages of one that holds its own (altmap) are measured apart.
 */
#define NODES 8 /* others share a pick with the node of the same remainder */

static struct bmm_pick memmap_picks[2 * NODES];

static void memmap_label(unsigned int which, char *buf, size_t size)
{
	scnprintf(buf, size, "node%u%s", which / 2, which % 2 ? "_own" : "");
}

static struct bmm_picks memmap_backend = {
	.name = "backend",
	.op = BMM_STAMP,
	.pick = memmap_picks,
	.label = memmap_label,
};

/** bmm_memmap_init() - before the path is shown: picks of the nodes there are */
void __init bmm_memmap_init(void)
{
	memmap_backend.nr = 2 * min(nr_node_ids, (unsigned int)NODES);
}

static unsigned int memmap_which(const struct bringup *b)
{
	unsigned int node = max(zone_to_nid(b->zone), 0);

	return 2 * (node % NODES) + !!pgmap_altmap(b->pgmap);
}

/*
 * Who else stamps: above 16 GiB a second CPU may pay for the time that it takes
 * to be there. A number that the operator asks for is for all ranges.
 */
static unsigned long memmap_workers;
static struct bmm_crew_size memmap_crews[2 * NODES];

#define MEMMAP_SHARED ((16UL << 30) / PAGE_SIZE)

static unsigned int memmap_most(const struct bringup *b)
{
	unsigned long wanted = READ_ONCE(memmap_workers);

	if (!wanted && b->end - b->pfn < MEMMAP_SHARED)
		return 1;
	return bmm_crew_most(max(zone_to_nid(b->zone), 0), wanted);
}

/*
 * struct stamping - what is stamped, by sections or single units longer than
 * those; the first and the last may be parts of one
 */
struct stamping {
	const struct bringup *b;
	const struct bmm_backend *backend;
	unsigned long step;  /* units of a section */
	unsigned long base;  /* what the first section counts from */
	unsigned long first; /* unit that is stamped */
	unsigned long end;
};

static void memmap_stamping(struct stamping *s, const struct bringup *b)
{
	s->b = b;
	s->step = max(PAGES_PER_SECTION >> b->order, 1UL);
	s->first = b->learn;
	s->end = b->units - b->last;
	/* modulo 2^64 it may lie before the first unit */
	s->base = s->first - ((b->pfn >> b->order) + s->first) % s->step;
}

static unsigned long memmap_sections(const struct stamping *s)
{
	return DIV_ROUND_UP(s->end - s->base, s->step);
}

/* Returns how many of its units are stamped, and the first of them. */
static unsigned long memmap_section(const struct stamping *s, unsigned long nr,
				    unsigned long *first)
{
	unsigned long end = min(s->base + (nr + 1) * s->step, s->end);

	*first = nr ? s->base + nr * s->step : s->first;
	return end - *first;
}

/*
 * The task may be preempted anywhere, and migrate: a context switch drains the
 * CPU it leaves.
 */
static unsigned long memmap_stamp_section(const struct stamping *s,
					  struct bmm_layout *layout,
					  unsigned long nr)
{
	unsigned long first, n = memmap_section(s, nr, &first);

	bmm_layout_stamp(layout, s->backend, memmap_first_page(s->b), first, n);
	bmm_drain_stores();
	return n;
}

static void memmap_pause(void)
{
	bmm_fault_delay();
	cond_resched();
}

static void memmap_part(const void *job, void *layout, unsigned long nr)
{
	memmap_stamp_section(job, layout, nr);
	memmap_pause();
}

static void memmap_log_crew(unsigned int which)
{
	const struct bmm_crew_size *size = &memmap_crews[which];
	char label[24];

	memmap_label(which, label, sizeof(label));
	pr_info("memmap: workers: %s: %u, at %u MB/s; %u at %u MB/s\n", label,
		size->members, size->best, size->other, size->rate);
}

/* The sections from one on, by several CPUs. */
static void memmap_share(const struct stamping *s, struct bmm_layout *layout,
			 unsigned long from, unsigned int most)
{
	unsigned int which = memmap_which(s->b);
	struct bmm_crew crew = {
		.part = memmap_part,
		.job = s,
		.own = layout,
		.own_size = sizeof(*layout),
		.bytes = memmap_bytes(s->b, s->step),
		.end = memmap_sections(s),
		.node = max(zone_to_nid(s->b->zone), 0),
		.most = most,
	};
	bool settled;

	if (!READ_ONCE(memmap_workers))
		crew.size = &memmap_crews[which];
	settled = crew.size && crew.size->settled;
	bmm_crew_run(&crew, from);
	if (crew.size && crew.size->settled && !settled)
		memmap_log_crew(which);
	bmm_path_count(&bmm_memmap, MEMMAP_SHARED_BYTES,
		       crew.shared * crew.bytes);
}

/*
 * A section at a time, each a sample while the pick measures; then the crew
 * has the rest. Returns the backend that wrote the last one.
 */
static const struct bmm_backend *memmap_stamp(const struct bringup *b,
					      struct bmm_layout *layout)
{
	unsigned int which = memmap_which(b), most = memmap_most(b);
	struct stamping s = {};
	struct bmm_turn turn;
	unsigned long nr, n;

	memmap_stamping(&s, b);
	for (nr = 0; nr < memmap_sections(&s); nr++) {
		turn.pick = NULL;
		s.backend = READ_ONCE(memmap_backend.forced);
		if (!s.backend)
			s.backend = bmm_turn_begin(&turn, &memmap_picks[which],
						   BMM_STAMP);
		if (!turn.pick && most > 1) {
			memmap_share(&s, layout, nr, most);
			break;
		}
		n = memmap_stamp_section(&s, layout, nr);
		if (bmm_turn_end(&turn, memmap_bytes(b, n)))
			bmm_picks_log(&bmm_memmap, &memmap_backend, which);
		memmap_pause();
	}
	return s.backend;
}

/* The drained struct pages may be read now; the kernel's function does. */
static void memmap_set_pageblocks(const struct bringup *b)
{
	unsigned long pfn = pageblock_align(memmap_learned_end(b));

	for (; pfn < b->end; pfn += pageblock_nr_pages) {
		static_call(bmm_pageblock)(
			bmm_pageblock_args(pfn_to_page(pfn), MIGRATE_MOVABLE));
		if (IS_ALIGNED(pfn, PAGES_PER_SECTION))
			cond_resched();
	}
}

/* A test build spoils what was learned, so that verification must refuse. */
static void memmap_spoil(const struct bringup *b)
{
	if (bmm_fault("unverified"))
		((u8 *)pfn_to_page(memmap_learned_end(b) - 1))[8] ^= 0x10;
}

static void memmap_account(const struct bringup *b,
			   const struct bmm_backend *backend, u64 ns)
{
	u64 bytes = memmap_bytes(b, b->units - b->learn - b->last);

	bmm_path_served(&bmm_memmap, bytes, ns);
	trace_memmap(b->pfn, b->end - b->pfn, b->order, bytes, ns,
		     backend->name);
}

/* Learns the layout from what the original built, and proves it on all that. */
static int memmap_learn(const struct bringup *b, struct bmm_layout *layout)
{
	void *first = memmap_first_page(b);
	int err;

	err = bmm_learn(layout, first, &b->geometry, b->learn);
	if (!err && b->last)
		err = bmm_layout_verify(layout, first, b->units - 1);
	return err;
}

/* Serves the whole request, or nothing and returns the reason. */
static int memmap_range(const struct bringup *b)
{
	struct bmm_layout *layout __free(kfree) = NULL;
	const struct bmm_backend *backend;
	u64 begin = ktime_get_ns();

	if (!bmm_fault("nomem"))
		layout = kmalloc(sizeof(*layout), GFP_KERNEL | __GFP_NOWARN);
	if (!layout)
		return REASON_NOMEM;

	memmap_original_last(b);
	memmap_original(b, memmap_learned_end(b));
	memmap_spoil(b);
	if (memmap_learn(b, layout)) {
		pr_warn("memmap: PFN 0x%lx: struct pages do not follow one layout (record %zu), original used\n",
			b->pfn, layout->differs);
		return REASON_UNVERIFIED;
	}
	backend = memmap_stamp(b, layout);
	memmap_set_pageblocks(b);
	memmap_account(b, backend, ktime_get_ns() - begin);
	return -1;
}

/* One line for what an operator should know; off and small are ordinary. */
static void memmap_log(const struct bringup *b, int reason)
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

static bool memmap_refs_traced(void)
{
	return page_ref_tracepoint_active(page_ref_set) ||
	       bmm_fault("tracepoint");
}

static int memmap_serve(struct bringup *b, unsigned long nr_pages)
{
	int reason;

	if (READ_ONCE(bmm_memmap.mode) == BMM_OFF)
		return REASON_OFF;
	reason = memmap_survey(b, nr_pages);
	if (reason < 0 && memmap_refs_traced())
		reason = REASON_TRACEPOINT;
	if (reason < 0)
		reason = memmap_range(b);
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
	reason = memmap_serve(&b, nr_pages);
	if (reason >= 0) {
		bmm_path_fallback(&bmm_memmap, reason);
		memmap_log(&b, reason);
		static_call(bmm_memmap_original)(zone, start_pfn, nr_pages,
						 pgmap);
	}
	bmm_path_leave(&bmm_memmap);
}

static void memmap_set_original(unsigned long address)
{
	static_call_update(bmm_memmap_original, (void *)address);
}

/*
 * Kernels whose struct pages this path may not or cannot predict: shadow
 * memory that follows each page, page words that change from section to
 * section, and pageblocks whose type is not MIGRATE_MOVABLE throughout.
 */
static const char *memmap_ruled_out_by(void)
{
	return BMM_NAME_IF_SET(CONFIG_KASAN)	     ?:
		       BMM_NAME_IF_SET(CONFIG_KMSAN) ?:
		       BMM_NAME_IF_SET(CONFIG_KEXEC_HANDOVER);
}

/* A struct page that can be stamped, at an address that follows from its PFN. */
static bool memmap_fits(void)
{
	return IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) &&
	       sizeof(struct page) % 8 == 0 &&
	       sizeof(struct page) >= BMM_RECORD_MIN &&
	       sizeof(struct page) <= BMM_RECORD_MAX;
}

static int memmap_prepare(const char **symbol)
{
	long pageblock;

	*symbol = memmap_ruled_out_by();
	if (*symbol || !memmap_fits())
		return -EOPNOTSUPP;
	pageblock = bmm_function_entry(BMM_PAGEBLOCK_SYMBOL,
				       bmm_pageblock_prototype);
	if (IS_ERR_VALUE(pageblock)) {
		*symbol = BMM_PAGEBLOCK_SYMBOL;
		return pageblock;
	}
	static_call_update(bmm_pageblock, (void *)pageblock);
	return 0;
}

static ssize_t memmap_workers_show(struct bmm_path *path, unsigned int index,
				   char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(memmap_workers));
}

/* Whatever is asked for, what was measured is forgotten. */
static ssize_t memmap_workers_store(struct bmm_path *path, unsigned int index,
				    const char *buf, size_t len)
{
	unsigned long value;
	int err = kstrtoul(buf, 0, &value);

	if (!err && value > BMM_CREW_MOST)
		err = -ERANGE;
	if (err) {
		pr_err("memmap: bad value '%.*s': a number from 0 to %u\n",
		       min((int)strcspn(buf, "\n"), 24), buf, BMM_CREW_MOST);
		return err;
	}
	WRITE_ONCE(memmap_workers, value);
	memset(memmap_crews, 0, sizeof(memmap_crews));
	return len;
}

static struct bmm_attribute workers_attr = {
	.attr = { .name = "workers", .mode = 0644 },
	.show = memmap_workers_show,
	.store = memmap_workers_store,
};

static ssize_t memmap_shared_show(struct bmm_path *path, unsigned int index,
				  char *buf)
{
	return sysfs_emit(buf, "%lld\n",
			  bmm_path_sum(path, MEMMAP_SHARED_BYTES));
}

static struct bmm_attribute shared_attr = {
	.attr = { .name = "shared_bytes", .mode = 0444 },
	.show = memmap_shared_show,
};

static const char *const modes[] = { "off", "on", NULL };

struct bmm_path bmm_memmap = {
	.name = "memmap",
	.modes = modes,
	.prepare = memmap_prepare,
	.picks = { &memmap_backend },
	.extras = { &workers_attr, &shared_attr },
	.hooks = { {
		.symbol = "memmap_init_zone_device",
		.prototype = bmm_memmap_prototype,
		.trampoline = bmm_memmap_trampoline,
		.threshold = &bmm_memmap_threshold,
		.set_original = memmap_set_original,
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
