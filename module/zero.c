// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroing for the paths that clear, in the cache or bypassing it, with the
 * backend that was picked.
 *
 * Four kinds of extents are measured separately: cached or streaming, each up
 * to and above bmm_zero_cached_max. Once the pick of a kind is decided, a
 * static call leads to the backend: no clock is read, nothing shared is
 * written. Patching it sleeps, and the allocator may call in atomic context: a
 * work item does it, and only if another backend won than the last time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/math64.h>
#include <linux/pgtable.h>
#include <linux/smp.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>
#include <asm/processor.h>

#include "clear.h"
#include "control.h"
#include "faults.h"
#include "zero.h"

enum mode {
	MODE_OFF = BMM_OFF,
	MODE_AUTO,
	MODE_CACHED,
	MODE_STREAMING,
};

const char *const bmm_zero_modes[] = {
	[MODE_OFF] = "off",
	[MODE_AUTO] = "auto",
	[MODE_CACHED] = "cached",
	[MODE_STREAMING] = "streaming",
	NULL,
};

/* The largest page that mode auto leaves in the cache, in bytes. */
unsigned long bmm_zero_cached_max;

struct bmm_zero_cpu __percpu *bmm_zero_cpus;

typedef void bmm_zero_fn(void *at, size_t len);

static struct bmm_pick picks[BMM_ZERO_KINDS];
static struct bmm_zero zeroes[BMM_ZERO_KINDS]; /* indexed by zero_kind() */

static unsigned int zero_kind(enum bmm_op op, size_t len)
{
	return 2 * (op == BMM_CLEAR_STREAMING) +
	       (len > READ_ONCE(bmm_zero_cached_max));
}

static void zero_settle(struct work_struct *work);
static DECLARE_WORK(zero_work, zero_settle);

/*
 * Settles a pick that is decided, in a work item. Not for callers of the
 * allocator that may hold a lock of the scheduler's or of the work queues', or
 * are in an NMI.
 */
static void zero_check(const struct bmm_zero *zero)
{
	if (unlikely(READ_ONCE(zero->serves) < 0) &&
	    bmm_pick_decided(zero->pick) && in_task() && !irqs_disabled())
		schedule_work(&zero_work);
}

/* Target of a static call before it is patched: serves late callers too. */
static void zero_plain(void *at, size_t len)
{
	memset(at, 0, len);
}

#define ZERO(kind)                                       \
	DEFINE_STATIC_CALL(bmm_zero_##kind, zero_plain); \
	static void zero_point_##kind(bmm_zero_fn *to)   \
	{                                                \
		static_call_update(bmm_zero_##kind, to); \
	}

ZERO(0)
ZERO(1)
ZERO(2)
ZERO(3)

/* The target of each kind's static call, and how to change it. */
static struct {
	void (*point)(bmm_zero_fn *to);
	const struct bmm_backend *pointed;
} calls[BMM_ZERO_KINDS] = {
	{ .point = zero_point_0 },
	{ .point = zero_point_1 },
	{ .point = zero_point_2 },
	{ .point = zero_point_3 },
};

/* Called by clear_unit.c. */
void bmm_zero_settled(const struct bmm_zero *zero, void *at, size_t len)
{
	switch (zero->kind) {
	case 0:
		return static_call(bmm_zero_0)(at, len);
	case 1:
		return static_call(bmm_zero_1)(at, len);
	case 2:
		return static_call(bmm_zero_2)(at, len);
	default:
		return static_call(bmm_zero_3)(at, len);
	}
}

/* A forced backend is a candidate, except generic for streaming. */
static int zero_number(struct bmm_zero *zero, const struct bmm_backend *backend)
{
	int k = 0;

	while (k < BMM_CANDIDATES && zero->by[k] != backend)
		k++;
	WRITE_ONCE(zero->by[k], backend);
	return k;
}

static void zero_freeze(unsigned int kind, const struct bmm_backend *backend)
{
	struct bmm_zero *zero = &zeroes[kind];

	if (calls[kind].pointed != backend)
		calls[kind].point(zero->op == BMM_CLEAR ?
					  backend->clear :
					  backend->clear_streaming);
	calls[kind].pointed = backend;
	WRITE_ONCE(zero->serves, zero_number(zero, backend));
	WRITE_ONCE(zero->settled, true);
}

static void zero_settle(struct work_struct *work)
{
	struct bmm_zero *zero;
	unsigned int kind;

	guard(mutex)(&bmm_picks_lock);
	for (kind = 0; kind < BMM_ZERO_KINDS; kind++) {
		zero = &zeroes[kind];
		if (zero->serves >= 0 || !bmm_pick_decided(zero->pick))
			continue;
		zero_freeze(kind, bmm_pick_backend(zero->pick, zero->op));
		bmm_picks_log(&bmm_clear_path, &bmm_zero_picks[kind / 2],
			      kind % 2);
	}
}

/*
 * A backend is forced from now on, or all are measured again. A caller that has
 * just seen a kind as settled is served by either.
 */
static void zero_changed(const struct bmm_picks *changed)
{
	unsigned int kind = 2 * (changed - bmm_zero_picks), end = kind + 2;

	for (; kind < end; kind++) {
		WRITE_ONCE(zeroes[kind].settled, false);
		WRITE_ONCE(zeroes[kind].serves, -1);
		if (changed->forced)
			zero_freeze(kind, changed->forced);
	}
	bmm_zero_forget_units();
}

static void zero_label(unsigned int which, char *buf, size_t size)
{
	scnprintf(buf, size, "%s", which ? "large" : "small");
}

#define PICKS(_name, _op, _first) \
	{ .name = (_name),        \
	  .op = (_op),            \
	  .nr = 2,                \
	  .pick = &picks[_first], \
	  .label = zero_label,    \
	  .changed = zero_changed }

struct bmm_picks bmm_zero_picks[2] = {
	PICKS("backend_cached", BMM_CLEAR, 0),
	PICKS("backend_streaming", BMM_CLEAR_STREAMING, 2),
};

struct bmm_attribute bmm_zero_streamed_attr = {
	.attr = { .name = "streamed", .mode = 0444 },
	.show = bmm_counter_show,
	.index = BMM_ZERO_STREAMED,
};

/*
 * This CPU's share of the last-level cache in bytes, or 0 if unknown: under
 * some hypervisors, and to modules on arm64. Size and sharers are those of one
 * CPU, as the caches of a machine may differ.
 */
static unsigned long zero_cache_share(void)
{
	unsigned int sharing = 0;
#ifdef CONFIG_X86_64
	unsigned int me, cpu;

	guard(preempt)();
	me = smp_processor_id();
	for_each_online_cpu(cpu)
	{
		if (cpu_data(cpu).topo.llc_id == cpu_data(me).topo.llc_id)
			sharing++;
	}
#endif
	return bmm_host_llc() / max(sharing, 1U);
}

/**
 * bmm_zero_init() - prepare zeroing, before paths may zero and users may tune
 *
 * Return: 0 or -ENOMEM.
 */
int bmm_zero_init(void)
{
	struct bmm_zero *zero;
	unsigned int kind, k;

	if (!bmm_fault_alloc())
		bmm_zero_cpus = alloc_percpu(struct bmm_zero_cpu);
	if (!bmm_zero_cpus)
		return -ENOMEM;
	/* Memory that a fault brings in is always worth its place. */
	bmm_zero_cached_max = max(zero_cache_share(), PMD_SIZE);
	for (kind = 0; kind < BMM_ZERO_KINDS; kind++) {
		zero = &zeroes[kind];
		zero->op = bmm_zero_picks[kind / 2].op;
		zero->kind = kind;
		zero->serves = -1;
		zero->pick = &picks[kind];
		for (k = 0; k < BMM_CANDIDATES; k++)
			zero->by[k] = bmm_candidate(zero->op, k);
	}
	return 0;
}

/** bmm_zero_exit() - free it all; nobody zeroes or writes to sysfs any more */
void bmm_zero_exit(void)
{
	cancel_work_sync(&zero_work);
	free_percpu(bmm_zero_cpus);
}

/**
 * bmm_zero_op() - decide whether memory is left in the cache
 * @bytes:      its size
 * @mode:       index into bmm_zero_modes, not that of "off"
 * @populating: whether it is prepared ahead of use
 *
 * Return: BMM_CLEAR or BMM_CLEAR_STREAMING.
 */
enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating)
{
	if (mode == MODE_CACHED)
		return BMM_CLEAR;
	if (mode == MODE_STREAMING || populating)
		return BMM_CLEAR_STREAMING;
	return bytes > READ_ONCE(bmm_zero_cached_max) ? BMM_CLEAR_STREAMING :
							BMM_CLEAR;
}

/*
 * The time of a timed unit stands for everything that this CPU has cleared
 * since the last one. Both counters must be read on the same CPU: otherwise
 * everything that one of them has ever cleared would count.
 */
static void zero_account(struct bmm_path *path, size_t n, u64 ns)
{
	s64 bytes, before;

	preempt_disable();
	bytes = this_cpu_read(path->counters->n[BMM_BYTES]);
	before = this_cpu_xchg(path->counters->n[BMM_ZERO_TIMED], bytes);
	preempt_enable();
	bytes = max_t(s64, bytes - before, n);
	bmm_path_count(path, BMM_NS, mul_u64_u64_div_u64(ns, bytes, n));
}

/**
 * bmm_zero() - zero one unit of an extent
 * @path:   the path to account the time to; it counts bytes itself
 * @op:     BMM_CLEAR or BMM_CLEAR_STREAMING
 * @want:   how units should be
 * @extent: bytes of the whole extent
 * @at:     where to continue
 * @left:   bytes left from there on
 * @ns:     result: how long it took; 0 if not timed
 *
 * Context: any, an NMI included.
 * Return: bytes zeroed and drained (bmm_unit_clear()).
 */
size_t bmm_zero(struct bmm_path *path, enum bmm_op op,
		const struct bmm_unit_want *want, size_t extent, char *at,
		size_t left, u64 *ns)
{
	struct bmm_zero *zero = &zeroes[zero_kind(op, extent)];
	struct bmm_units *mine = raw_cpu_ptr(&bmm_zero_cpus->units);
	size_t n = bmm_unit_clear(zero, mine, want, at, left, ns);

	if (op == BMM_CLEAR_STREAMING)
		bmm_path_count(path, BMM_ZERO_STREAMED, n);
	if (unlikely(*ns)) {
		zero_account(path, n, *ns);
		zero_check(zero);
	}
	return n;
}

/**
 * bmm_zero_serving() - which backend zeroes
 * @op:  BMM_CLEAR or BMM_CLEAR_STREAMING
 * @len: bytes of the extent
 *
 * Return: its name; while measuring, that of the fastest so far.
 */
const char *bmm_zero_serving(enum bmm_op op, size_t len)
{
	const struct bmm_zero *zero = &zeroes[zero_kind(op, len)];
	int serves = READ_ONCE(zero->serves);

	return (serves < 0 ? bmm_pick_backend(zero->pick, op) : zero->by[serves])
		->name;
}

/** bmm_zero_forget_units() - reset what is known about units */
void bmm_zero_forget_units(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(&per_cpu_ptr(bmm_zero_cpus, cpu)->units, 0,
		       sizeof(struct bmm_units));
}
