// SPDX-License-Identifier: GPL-2.0-only
/*
 * clear: zeroes huge pages in extents.
 *
 * folio_zero_user() clears a huge page before a process sees it: 4 KiB at a
 * time up to 6.19, by REP STOSB over ranges from 7.0 on. Here the core's
 * backends clear it: left in the cache for a page that is about to be touched,
 * bypassing it for memory that is prepared ahead of use. Either way the
 * neighbourhood of a touch comes last and stays in the cache, and a kernel that
 * does not preempt gets its chances to reschedule by time, not by pages.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/static_call.h>

#include "compat/compat.h"
#include "control.h"
#include "prototype.h"
#include "select.h"
#include "trace.h"
#include "clear_common.h"

enum {
	/* switched off after the check, or only prezero is on */
	FALLBACK_OFF = BMM_ZERO_STREAMED + 1,
	FALLBACK_SMALL, /* too few pages to gain anything */
};

/*
 * Tunables; see the files of the same names. min_pages: the smallest folio that
 * gained both before and after the kernel itself began to clear in extents is
 * 32 KiB: 1.5 (6.12) and 1.06 times the speed (7.3); 16 KiB: 1.4 and 1.0
 * (Zen 5).
 */
static unsigned long latency_us = 1000;
static unsigned long min_pages = 8;
static unsigned long radius = 2;

/*
 * struct job - one folio
 * @base:    its first byte; mapped in one piece
 * @bytes:   its size
 * @op:      how everything but the neighbourhood is cleared
 * @traced:  the tracepoint is on
 * @largest: bytes of the largest unit, if traced
 * @longest: ns of the longest unit, if traced
 */
struct clear_request {
	char *base;
	size_t bytes;
	enum bmm_op op;
	bool traced;
	size_t largest;
	u64 longest;
};

/*
 * Part of the target time that a unit takes at the rate that was measured: one
 * CPU alone was, and the memory may be slower, or shared with all the others.
 */
#define SHARE 8

/*
 * Bytes between two chances to reschedule. A preemptible kernel needs none. A
 * rate that is not known is worth a page; and one that a coarse clock made up,
 * no more than the kernel's own batch (clear_contig_highpages() in mm/memory.c,
 * 7.3).
 */
static size_t clear_unit(enum bmm_op op)
{
	u64 unit = (u64)bmm_selected_rate(op) * READ_ONCE(latency_us) / SHARE;

	if (preempt_model_preemptible())
		return SIZE_MAX;
	return clamp(ALIGN_DOWN(unit, PAGE_SIZE), PAGE_SIZE, SZ_32M);
}

/* The clock is read only for the tracepoint. */
static u64 clear_now(const struct clear_request *req)
{
	return req->traced ? ktime_get_mono_fast_ns() : 0;
}

/* Clears bytes @from to @to of the folio, whole pages. */
static void clear_range(struct clear_request *req, enum bmm_op op, size_t from,
			size_t to)
{
	size_t unit = clear_unit(op), n;
	u64 start;

	for (; from < to; from += n) {
		cond_resched();
		n = min(unit, to - from);
		start = clear_now(req);
		bmm_zero(&bmm_clear_path, op, req->base + from, n);
		req->longest = max(req->longest, clear_now(req) - start);
		req->largest = max(req->largest, n);
	}
}

/*
 * Somebody is about to touch @hint: clear what is around it last. If everything
 * is left in the cache, what precedes it needs no extent of its own: stores go
 * upwards and get there last. One extent less is 4 to 8 % of a folio of 64 KiB
 * (Zen 5).
 */
static void clear_around(struct clear_request *req, size_t hint)
{
	size_t reach = READ_ONCE(radius) * PAGE_SIZE;
	size_t from = hint > reach ? hint - reach : 0;
	size_t to = min(hint + PAGE_SIZE + reach, req->bytes);

	if (req->op == BMM_CLEAR)
		from = 0;
	clear_range(req, req->op, to, req->bytes);
	clear_range(req, req->op, 0, from);
	clear_range(req, BMM_CLEAR, from, to);
}

static void clear_folio(struct folio *folio, unsigned long addr_hint, int mode)
{
	bool populating = bmm_is_populating();
	struct clear_request req = {
		.base = folio_address(folio),
		.bytes = folio_size(folio),
		.traced = trace_clear_enabled(),
	};
	u64 start = clear_now(&req);

	req.op = bmm_zero_op(req.bytes, mode, populating);
	if (populating)
		clear_range(&req, req.op, 0, req.bytes);
	else
		clear_around(&req, PAGE_ALIGN_DOWN(addr_hint) & (req.bytes - 1));
	bmm_path_served(&bmm_clear_path, req.bytes, 0);
	if (req.traced)
		trace_clear(folio_pfn(folio), folio_order(folio), req.bytes,
			    clear_now(&req) - start, req.largest, req.longest,
			    req.op == BMM_CLEAR_STREAMING,
			    bmm_selected(req.op)->name);
}

/* Returns a reason to fall back to the original, or -1. */
static int clear_survey(unsigned long nr_pages, int mode)
{
	if (mode == BMM_OFF)
		return FALLBACK_OFF;
	if (nr_pages < max(READ_ONCE(min_pages), 2UL))
		return FALLBACK_SMALL;
	return -1;
}

static void clear_serve(struct folio *folio, unsigned long addr_hint)
{
	int mode = READ_ONCE(bmm_clear_path.mode);
	int reason = clear_survey(1UL << folio_order(folio), mode);

	if (reason < 0) {
		clear_folio(folio, addr_hint, mode);
		return;
	}
	bmm_path_count(&bmm_clear_path, reason, 1);
	static_call(bmm_clear_original)(BMM_CLEAR_ARGS(folio, addr_hint));
}

/*
 * Entered from the trampoline in place of folio_zero_user(), while this path or
 * prezero is on.
 */
void bmm_clear_handler(BMM_CLEAR_PARAMS)
{
	bmm_path_enter(&bmm_clear_path);
	might_sleep(); /* counted first: it may be where a task sleeps */
	if (!bmm_prezero_serves(BMM_CLEAR_FOLIO))
		clear_serve(BMM_CLEAR_FOLIO, addr_hint);
	bmm_path_leave(&bmm_clear_path);
}

/* Architectures that do more than zero a page define these. */
#if defined(clear_user_highpage) || defined(clear_user_page)
#define ARCH_DOES_MORE true
#else
#define ARCH_DOES_MORE false
#endif

static int clear_prepare(void)
{
	return ARCH_DOES_MORE ? -EOPNOTSUPP : 0;
}

static struct bmm_tunable latency_us_file = BMM_TUNABLE(latency_us, latency_us,
							USEC_PER_SEC);
static struct bmm_tunable min_pages_file = BMM_TUNABLE(min_pages, min_pages,
						       1UL << 20);
static struct bmm_tunable radius_file = BMM_TUNABLE(radius, radius, 512);
static struct bmm_tunable cached_max_file = BMM_TUNABLE(cached_max,
							bmm_zero_cached_max,
							ULONG_MAX);

struct bmm_path bmm_clear_path = {
	BMM_PATH_NAMED(clear),
	.prepare = clear_prepare,
	.files = { &bmm_select_files[BMM_CLEAR].attr,
		   &bmm_select_files[BMM_CLEAR_STREAMING].attr,
		   &latency_us_file.file.attr, &min_pages_file.file.attr,
		   &radius_file.file.attr, &cached_max_file.file.attr },
	.hooks = { { BMM_HOOK(clear) } },
	.names[BMM_ZERO_STREAMED] = "streamed",
	.names[FALLBACK_OFF] = "fallback_off",
	.names[FALLBACK_SMALL] = "fallback_small",
};
