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
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "clear.h"
#include "control.h"
#include "populate.h"
#include "prototype.h"
#include "trace.h"
#include "zero.h"

enum reason {
	REASON_OFF,   /* switched off after the trampoline's check */
	REASON_SMALL, /* too few pages to gain anything */
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
static unsigned long unit_bytes;

BMM_FUNCTION(bmm_clear, void, struct folio *, unsigned long);
static_assert(__same_type(bmm_clear_handler, bmm_clear_fn));
DEFINE_STATIC_CALL_NULL(bmm_clear_original, *(bmm_clear_fn *)NULL);

unsigned long bmm_clear_threshold = BMM_HOOK_PASS;

/*
 * struct job - one folio
 * @base:        its first byte; mapped in one piece
 * @bytes:       its size
 * @op:          how everything but the neighbourhood is cleared
 * @want:        how its units should be
 * @cooperative: the kernel reschedules only when asked
 * @gap:         what it adds to the statistics of its order
 * @largest:     bytes of the largest unit
 */
struct job {
	char *base;
	size_t bytes;
	enum bmm_op op;
	struct bmm_unit_want want;
	bool cooperative;
	struct bmm_zero_gap gap;
	size_t largest;
};

/*
 * On a preemptible kernel there is no reason to stop. Each unit is timed only
 * while the tracepoint reports it.
 */
static void clear_want(struct job *job)
{
	unsigned long bytes = READ_ONCE(unit_bytes);

	job->cooperative = !preempt_model_preemptible();
	job->want = (struct bmm_unit_want){
		.bytes = bytes ? max(ALIGN_DOWN(bytes, PAGE_SIZE), PAGE_SIZE) :
				 SIZE_MAX,
		.ns = (u64)READ_ONCE(latency_us) * NSEC_PER_USEC,
		.by_ns = job->cooperative && !bytes,
		.timed = trace_clear_enabled(),
	};
}

/* Clears bytes @from to @to of the folio, whole pages. */
static void clear_range(struct job *job, enum bmm_op op, size_t from, size_t to)
{
	size_t extent = to - from, n;
	u64 ns;

	for (; from < to; from += n) {
		cond_resched();
		n = bmm_zero(&bmm_clear_path, op, &job->want, extent,
			     job->base + from, to - from, &ns);
		job->largest = max(job->largest, n);
		job->gap.units++;
		job->gap.over += ns > job->want.ns + job->want.ns / 2;
		job->gap.longest = max(job->gap.longest, ns);
	}
}

/*
 * Somebody is about to touch @hint: clear what is around it last. If everything
 * is left in the cache, what precedes it needs no extent of its own: stores go
 * upwards and get there last. One extent less is 4 to 8 % of a folio of 64 KiB
 * (Zen 5).
 */
static void clear_around(struct job *job, size_t hint)
{
	size_t reach = READ_ONCE(radius) * PAGE_SIZE;
	size_t from = hint > reach ? hint - reach : 0;
	size_t to = min(hint + PAGE_SIZE + reach, job->bytes);

	if (job->op == BMM_CLEAR)
		from = 0;
	clear_range(job, job->op, to, job->bytes);
	clear_range(job, job->op, 0, from);
	clear_range(job, BMM_CLEAR, from, to);
}

/* Accounts how long it ran without a chance to reschedule. */
static void clear_account(unsigned int order, const struct bmm_zero_gap *gap)
{
	struct bmm_zero_gap __percpu
		*seen = &bmm_zero_cpus->gaps[min(order, BMM_ZERO_ORDERS - 1U)];

	this_cpu_inc(seen->folios);
	if (!gap->units)
		return;
	this_cpu_add(seen->units, gap->units);
	this_cpu_add(seen->over, gap->over);
	if (gap->longest > this_cpu_read(seen->longest))
		this_cpu_write(seen->longest, gap->longest);
}

static void clear_folio(struct folio *folio, unsigned long addr_hint, int mode)
{
	bool populating = bmm_populating();
	struct job job = {
		.base = folio_address(folio),
		.bytes = folio_size(folio),
	};
	u64 begun = 0;

	job.op = bmm_zero_op(job.bytes, mode, populating);
	clear_want(&job);
	if (job.want.timed)
		begun = ktime_get_mono_fast_ns();
	if (populating)
		clear_range(&job, job.op, 0, job.bytes);
	else
		clear_around(&job, PAGE_ALIGN_DOWN(addr_hint) & (job.bytes - 1));
	if (!job.cooperative)
		job.gap = (struct bmm_zero_gap){};
	bmm_path_count(&bmm_clear_path, BMM_HITS, 1);
	bmm_path_count(&bmm_clear_path, BMM_BYTES, job.bytes);
	clear_account(folio_order(folio), &job.gap);
	if (job.want.timed)
		trace_clear(folio_pfn(folio), folio_order(folio), job.bytes,
			    ktime_get_mono_fast_ns() - begun, job.largest,
			    job.gap.longest, job.op == BMM_CLEAR_STREAMING,
			    bmm_zero_serving(job.op, job.bytes));
}

/* Returns a reason to fall back to the original, or -1. */
static int clear_serve(struct folio *folio, unsigned long addr_hint)
{
	int mode = READ_ONCE(bmm_clear_path.mode);

	if (mode == BMM_OFF)
		return REASON_OFF;
	if (folio_nr_pages(folio) < max(READ_ONCE(min_pages), 2UL))
		return REASON_SMALL;
	clear_folio(folio, addr_hint, mode);
	return -1;
}

/* Entered from the trampoline in place of folio_zero_user(). */
void bmm_clear_handler(struct folio *folio, unsigned long addr_hint)
{
	int reason;

	might_sleep();
	bmm_path_enter(&bmm_clear_path);
	reason = clear_serve(folio, addr_hint);
	if (reason >= 0) {
		bmm_path_fallback(&bmm_clear_path, reason);
		static_call(bmm_clear_original)(folio, addr_hint);
	}
	bmm_path_leave(&bmm_clear_path);
}

static void clear_set_original(unsigned long address)
{
	static_call_update(bmm_clear_original, (void *)address);
}

/* Architectures that do more than zero a page define these. */
#if defined(clear_user_highpage) || defined(clear_user_page)
#define ARCH_DOES_MORE true
#else
#define ARCH_DOES_MORE false
#endif

/*
 * The original also does what the architecture and the sanitizers need around
 * clearing a user page: memory that is not permanently mapped, shadow memory,
 * aliasing caches. Not arm64's memory tags: they are cleared when the page is
 * allocated or mapped.
 */
static const char *clear_ruled_out_by(void)
{
	return BMM_NAME_IF_SET(CONFIG_HIGHMEM)	     ?:
		       BMM_NAME_IF_SET(CONFIG_KMSAN) ?:
		       BMM_NAME_IF_SET(CONFIG_KASAN) ?:
		       BMM_NAME_IF_SET(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING);
}

static int clear_prepare(const char **symbol)
{
	*symbol = clear_ruled_out_by();
	return *symbol || ARCH_DOES_MORE ? -EOPNOTSUPP : 0;
}

static unsigned long *const tunables[] = { &latency_us, &min_pages, &radius,
					   &bmm_zero_cached_max, &unit_bytes };

static ssize_t clear_tunable_show(struct bmm_path *path, unsigned int index,
				  char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(*tunables[index]));
}

static ssize_t clear_tunable_store(struct bmm_path *path, unsigned int index,
				   const char *buf, size_t len)
{
	static const unsigned long most[] = { USEC_PER_SEC, 1UL << 20, 512,
					      ULONG_MAX, ULONG_MAX };
	unsigned long value;
	int err = bmm_parse_number(path, buf, most[index], &value);

	if (err)
		return err;
	WRITE_ONCE(*tunables[index], value);
	if (tunables[index] == &latency_us)
		bmm_zero_forget_units();
	return len;
}

#define TUNABLE(_name, _index)                            \
	static struct bmm_attribute _name##_attr = {      \
		.attr = { .name = #_name, .mode = 0644 }, \
		.show = clear_tunable_show,               \
		.store = clear_tunable_store,             \
		.index = (_index),                        \
	}

TUNABLE(latency_us, 0);
TUNABLE(min_pages, 1);
TUNABLE(radius, 2);
TUNABLE(cached_max, 3);
TUNABLE(unit_bytes, 4);

enum column {
	COLUMN_FOLIOS,
	COLUMN_UNITS,
	COLUMN_OVER,
	COLUMN_LONGEST,
};

static u64 clear_gap_of(const struct bmm_zero_gap *gap, unsigned int column)
{
	switch (column) {
	case COLUMN_FOLIOS:
		return READ_ONCE(gap->folios);
	case COLUMN_UNITS:
		return READ_ONCE(gap->units);
	case COLUMN_OVER:
		return READ_ONCE(gap->over);
	default:
		return READ_ONCE(gap->longest);
	}
}

/* Summed over all CPUs; of the longest, the maximum. */
static ssize_t clear_gap_show(struct bmm_path *path, unsigned int index,
			      char *buf)
{
	unsigned int order = index / BMM_COLUMNS, column = index % BMM_COLUMNS;
	u64 value, all = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		value = clear_gap_of(
			&per_cpu_ptr(bmm_zero_cpus, cpu)->gaps[order], column);
		all = column == COLUMN_LONGEST ? max(all, value) : all + value;
	}
	return sysfs_emit(buf, "%llu\n", all);
}

#define COLUMN(_name, _index)          \
	{ .attr = { .name = (_name) }, \
	  .show = clear_gap_show,      \
	  .index = (_index) }

static const struct bmm_attribute gap_files[] = {
	COLUMN("folios", COLUMN_FOLIOS),
	COLUMN("units", COLUMN_UNITS),
	COLUMN("over", COLUMN_OVER),
	COLUMN("longest_ns", COLUMN_LONGEST),
	{},
};

static const struct bmm_numbered gaps = {
	.name = "order",
	.first = 1,
	.last = BMM_ZERO_ORDERS - 1,
	.files = gap_files,
};

/* Any write resets the counters and has each CPU time its next unit. */
static ssize_t clear_reset_store(struct bmm_path *path, unsigned int index,
				 const char *buf, size_t len)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(bmm_zero_cpus, cpu)->gaps, 0,
		       sizeof(bmm_zero_cpus->gaps));
	bmm_zero_forget_units();
	return len;
}

static struct bmm_attribute reset_attr = {
	.attr = { .name = "reset_orders", .mode = 0200 },
	.store = clear_reset_store,
};

struct bmm_path bmm_clear_path = {
	.name = "clear",
	.modes = bmm_zero_modes,
	.prepare = clear_prepare,
	.picks = { &bmm_zero_picks[0], &bmm_zero_picks[1] },
	.numbered = &gaps,
	.extras = { &reset_attr, &latency_us_attr, &min_pages_attr, &radius_attr,
		    &cached_max_attr, &unit_bytes_attr,
		    &bmm_zero_streamed_attr },
	.hooks = { {
		.symbol = "folio_zero_user",
		.prototype = bmm_clear_prototype,
		.trampoline = bmm_clear_trampoline,
		.threshold = &bmm_clear_threshold,
		.set_original = clear_set_original,
	} },
	.reasons = {
		[REASON_OFF] = "off",
		[REASON_SMALL] = "small",
	},
};
