// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: initialises struct pages of device memory in ranges.
 *
 * memmap_init_zone_device() builds every struct page of a device from scratch.
 * Here the kernel's own function builds the first few units, bmm_learn() learns
 * their layout and verifies it on them, and the rest is stamped. What a struct
 * page holds, and how many tails carry compound data, is not coded anywhere.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/page_ref.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/static_call.h>

#include "../core/learn.h"
#include "compat/compat.h"
#include "faults.h"
#include "memmap.h"
#include "prototype.h"
#include "select.h"
#include "trace.h"

enum {
	FALLBACK_OFF = BMM_MEMMAP_VERIFIED + 1, /* the path is switched off */
	FALLBACK_SMALL,	     /* learning costs more than stamping saves */
	FALLBACK_TRACEPOINT, /* page_ref_set is traced: stamping would hide it */
	FALLBACK_LAYOUT, /* units are not all alike, or the last one is cut */
	FALLBACK_UNVERIFIED, /* the learned units contradict each other */
	FALLBACK_NOMEM,	     /* no memory for images or checksums */
	FALLBACK_INVALID,    /* the original rejects or ignores it */
	FALLBACK_MISMATCH, /* the original wrote something else, now or before */
};

/*
 * Below this, struct pages that were just zeroed are still in the cache, where
 * the original is as fast as a stamp that bypasses it: Zen 5 gains 2 % at four
 * sections, and loses 11 % at two, 27 % at one.
 */
static unsigned long memmap_min_pages = 4 * PAGES_PER_SECTION;
module_param(memmap_min_pages, ulong, 0644);
MODULE_PARM_DESC(
	memmap_min_pages,
	"memmap: smallest range that is stamped, in pages (default: four sections, 131072 = 512 MiB on x86-64)");

/*
 * Units that a request must have for each one that the original builds: seven
 * units of 1 GiB behind an altmap, two of them learned, broke even (Zen 5).
 */
#define MEMMAP_WORTH 4

static bool memmap_early(unsigned long pfn)
{
	return early_section(__pfn_to_section(pfn));
}

/*
 * Struct pages that exist in the unit at @pfn. With optimised vmemmap the
 * tails beyond the reserved ones share pages and are not written; an early
 * section keeps its full boot memmap (see section_activate()).
 */
static unsigned long memmap_unit_records(const struct memmap_request *req,
					 unsigned long pfn)
{
	struct vmem_altmap *altmap = pgmap_altmap(req->pgmap);

	if (memmap_early(pfn) || !vmemmap_can_optimize(altmap, req->pgmap))
		return 1UL << req->order;
	return VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page));
}

/*
 * One geometry serves only if all sections agree on how many struct pages a
 * unit has; they do where the vmemmap is not optimised.
 */
static bool memmap_sections_agree(const struct memmap_request *req)
{
	unsigned long pfn;

	if (!vmemmap_can_optimize(pgmap_altmap(req->pgmap), req->pgmap))
		return true;
	for (pfn = ALIGN(req->pfn + 1, PAGES_PER_SECTION); pfn < req->end;
	     pfn += PAGES_PER_SECTION)
		if (memmap_early(pfn) != memmap_early(req->pfn))
			return false;
	return true;
}

/*
 * What the original should build. Order 0: a pageblock costs nothing to learn
 * from. Units as long as sections: two hold many struct pages, and each further
 * one is one less to stamp. The last unit proves what lies between; with an
 * altmap the original starts where that says, and cannot build it alone.
 */
static void memmap_divide(struct memmap_request *req)
{
	req->last_units = !pgmap_altmap(req->pgmap);
	req->learned_units = BMM_LEARN_UNITS;
	if (!req->order)
		req->learned_units = pageblock_nr_pages;
	else if (1UL << req->order >= PAGES_PER_SECTION)
		req->learned_units = 2;
}

/* Returns a reason to fall back to the original, or -1. */
static int memmap_survey(struct memmap_request *req, unsigned long nr_pages)
{
	struct vmem_altmap *altmap;

	if (!req->pgmap || !nr_pages || zone_idx(req->zone) != ZONE_DEVICE)
		return FALLBACK_INVALID;

	altmap = pgmap_altmap(req->pgmap);
	req->pfn = altmap ? altmap->base_pfn + vmem_altmap_offset(altmap) :
			    req->start_pfn;
	if (req->end <= req->pfn)
		return FALLBACK_INVALID;
	req->order = req->pgmap->vmemmap_shift;
	req->units = (req->end - req->pfn) >> req->order;
	req->geometry.record = sizeof(struct page);
	req->geometry.records = memmap_unit_records(req, req->pfn);
	req->geometry.stride = sizeof(struct page) << req->order;
	memmap_divide(req);
	if (req->end - req->pfn < READ_ONCE(memmap_min_pages) ||
	    req->units < MEMMAP_WORTH * (req->learned_units + req->last_units))
		return FALLBACK_SMALL;
	if (((req->end - req->pfn) & ((1UL << req->order) - 1)) ||
	    !memmap_sections_agree(req))
		return FALLBACK_LAYOUT;
	return -1;
}

/* Runs the kernel's own function from the start of the range up to @end. */
static void memmap_original(const struct memmap_request *req, unsigned long end)
{
	static_call(bmm_memmap_original)(req->zone, req->start_pfn,
					 end - req->start_pfn, req->pgmap);
}

static void memmap_original_last(const struct memmap_request *req)
{
	unsigned long nr = req->last_units << req->order;

	if (nr)
		static_call(bmm_memmap_original)(req->zone, req->end - nr, nr,
						 req->pgmap);
}

static unsigned long memmap_learned_end(const struct memmap_request *req)
{
	return req->pfn + (req->learned_units << req->order);
}

/* Reads struct pages, in the kernel's function: they are drained. */
static void memmap_set_pageblocks(const struct memmap_request *req)
{
	unsigned long pfn = pageblock_align(memmap_learned_end(req));

	for (; pfn < req->end; pfn += pageblock_nr_pages) {
		static_call(bmm_pageblock)(
			bmm_pageblock_args(pfn_to_page(pfn), MIGRATE_MOVABLE));
		if (IS_ALIGNED(pfn, PAGES_PER_SECTION))
			cond_resched();
	}
}

/* A test build corrupts what was learned, so that verification must fail. */
static void memmap_corrupt(const struct memmap_request *req)
{
	if (bmm_fault("unverified"))
		((u8 *)pfn_to_page(memmap_learned_end(req) - 1))[8] ^= 0x10;
}

/* Learns the layout from what the original built, and verifies all of that. */
static int memmap_learn(const struct memmap_request *req,
			struct bmm_layout *layout)
{
	void *first = memmap_first_page(req);
	int err;

	err = bmm_learn(layout, first, &req->geometry, req->learned_units);
	if (!err && req->last_units)
		err = bmm_layout_verify(layout, first, req->units - 1);
	return err;
}

/* The PFN of a record, counted as bmm_learn() counts. */
static unsigned long memmap_record_pfn(const struct memmap_request *req,
				       size_t record)
{
	return req->pfn + (record / req->geometry.records << req->order) +
	       record % req->geometry.records;
}

/*
 * Has the original build all of it again, and compares. If that differs it is
 * the original's turn once more, as for any request that falls back.
 */
static int memmap_verify(struct memmap_request *req)
{
	u64 *sums = bmm_memmap_sums(req);
	bool differs;

	if (!sums)
		return FALLBACK_NOMEM;
	memmap_original(req, req->end);
	differs = bmm_memmap_differs(req, sums);
	kvfree(sums);
	return differs ? FALLBACK_MISMATCH : -1;
}

/* Serves the whole request, or nothing, and returns the reason. */
static int memmap_range(struct memmap_request *req)
{
	struct bmm_layout *layout __free(kfree) = NULL;

	if (!bmm_fault("nomem"))
		layout = kmalloc(sizeof(*layout), GFP_KERNEL | __GFP_NOWARN);
	if (!layout)
		return FALLBACK_NOMEM;

	memmap_original_last(req);
	memmap_original(req, memmap_learned_end(req));
	memmap_corrupt(req);
	if (memmap_learn(req, layout)) {
		req->wrong_pfn = memmap_record_pfn(req, layout->differs);
		return FALLBACK_UNVERIFIED;
	}
	req->backend = bmm_memmap_stamp(req, layout);
	memmap_set_pageblocks(req);
	return bmm_memmap_verify_due(req) ? memmap_verify(req) : -1;
}

static bool memmap_refs_traced(void)
{
	return page_ref_tracepoint_active(page_ref_set) ||
	       bmm_fault("tracepoint");
}

static int memmap_serve(struct memmap_request *req, unsigned long nr_pages)
{
	int reason;

	if (READ_ONCE(bmm_memmap_path.mode) == BMM_OFF)
		return FALLBACK_OFF;
	reason = memmap_survey(req, nr_pages);
	if (reason < 0 && memmap_refs_traced())
		reason = FALLBACK_TRACEPOINT;
	if (reason < 0 && bmm_memmap_verify_failed())
		reason = FALLBACK_MISMATCH;
	if (reason < 0)
		reason = memmap_range(req);
	return reason;
}

static const char *const reasons[] = {
	[FALLBACK_OFF] = "the path is off",
	[FALLBACK_SMALL] = "it has too few units",
	[FALLBACK_TRACEPOINT] = "page_ref_set is being traced",
	[FALLBACK_LAYOUT] = "its units are not all alike",
	[FALLBACK_UNVERIFIED] = "its struct pages do not follow one layout",
	[FALLBACK_NOMEM] = "no memory to learn or to verify",
	[FALLBACK_INVALID] = "the kernel refuses or ignores it",
	[FALLBACK_MISMATCH] =
		"verification failed, nothing is served until memmap/verify is written",
};

static const char *memmap_log_level(const struct memmap_request *req, int reason)
{
	if (reason < 0)
		return KERN_INFO;
	if (!req->wrong_pfn)
		return KERN_NOTICE;
	return reason == FALLBACK_MISMATCH ? KERN_ERR : KERN_WARNING;
}

/* One line for each device, unless it is too small ever to be served. */
static void memmap_log(const struct memmap_request *req, int reason, u64 bytes,
		       u64 ns)
{
	u64 tenths = div64_u64(10 * bytes, max(ns, 1ULL));
	char where[32] = "";

	if (req->end - req->start_pfn < READ_ONCE(memmap_min_pages))
		return;
	if (req->wrong_pfn)
		scnprintf(where, sizeof(where), " (PFN 0x%lx)", req->wrong_pfn);
	printk("%s" pr_fmt(
		       "memmap: PFNs 0x%lx-0x%lx, order %u: %llu.%03llu ms, %llu.%llu GB/s, %s%s%s%s\n"),
	       memmap_log_level(req, reason), req->pfn, req->end - 1, req->order,
	       ns / NSEC_PER_MSEC, ns / NSEC_PER_USEC % 1000, tenths / 10,
	       tenths % 10, reason < 0 ? "served by " : "original used: ",
	       reason < 0 ? req->backend->name : reasons[reason], where,
	       req->verified ? ", verified" : "");
}

/* Counts, traces and logs a request that took @ns. */
static void memmap_record(const struct memmap_request *req, int reason, u64 ns)
{
	u64 stamped = 0, bytes = bmm_memmap_bytes(req, req->units);

	if (reason < 0) {
		stamped = bmm_memmap_bytes(req, req->units - req->learned_units -
							req->last_units);
		bmm_path_served(&bmm_memmap_path, stamped, ns);
	} else {
		bmm_path_count(&bmm_memmap_path, reason, 1);
	}
	trace_memmap(req, stamped, ns,
		     reason >= 0   ? bmm_path_reason(&bmm_memmap_path, reason) :
		     req->verified ? "verified" :
				     "served");
	memmap_log(req, reason, bytes, ns);
}

/* Entered from the trampoline in place of memmap_init_zone_device(). */
void bmm_memmap_handler(struct zone *zone, unsigned long start_pfn,
			unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	struct memmap_request req = {
		.zone = zone,
		.pgmap = pgmap,
		.start_pfn = start_pfn,
		.pfn = start_pfn,
		.end = start_pfn + nr_pages,
	};
	u64 start = ktime_get_ns();
	int reason;

	bmm_path_enter(&bmm_memmap_path);
	reason = memmap_serve(&req, nr_pages);
	if (reason >= 0)
		static_call(bmm_memmap_original)(zone, start_pfn, nr_pages,
						 pgmap);
	memmap_record(&req, reason, ktime_get_ns() - start);
	bmm_path_leave(&bmm_memmap_path);
}

/* Whether struct pages can be stamped. */
static int memmap_prepare(void)
{
	if (sizeof(struct page) % 8 || sizeof(struct page) < BMM_RECORD_MIN ||
	    sizeof(struct page) > BMM_RECORD_MAX)
		return -EOPNOTSUPP;
	return 0;
}

struct bmm_path bmm_memmap_path = {
	BMM_PATH_NAMED(memmap),
	.prepare = memmap_prepare,
	.files = { &bmm_select_files[BMM_STAMP].attr,
		   &bmm_memmap_workers_file.file.attr,
		   &bmm_memmap_verify_file.attr },
	.hooks = { { BMM_HOOK(memmap) } },
	.names[BMM_NS] = "ns",
	.names[BMM_MEMMAP_SHARED] = "shared_bytes",
	.names[BMM_MEMMAP_VERIFIED] = "verified",
	.names[FALLBACK_OFF] = "fallback_off",
	.names[FALLBACK_SMALL] = "fallback_small",
	.names[FALLBACK_TRACEPOINT] = "fallback_tracepoint",
	.names[FALLBACK_LAYOUT] = "fallback_layout",
	.names[FALLBACK_UNVERIFIED] = "fallback_unverified",
	.names[FALLBACK_NOMEM] = "fallback_nomem",
	.names[FALLBACK_INVALID] = "fallback_invalid",
	.names[FALLBACK_MISMATCH] = "fallback_mismatch",
};
