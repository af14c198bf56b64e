// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroing for the paths that clear: in the cache or bypassing it, by the
 * backend that was picked.
 *
 * Four kinds of extents are measured apart: left in the cache or streaming,
 * each up to and above bmm_zero_cached_max. Once the pick of a kind is decided,
 * a static call leads to the backend: no clock is read, nothing shared is
 * written. Patching it sleeps, and the allocator may call from where one must
 * not: a work item does it, and only if another backend has won than the last
 * time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/pgtable.h>
#include <linux/smp.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>
#include <asm/processor.h>

#include "../core/drain.h"
#include "clear.h"
#include "zero.h"

#define KINDS 4

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

/* The largest page that "auto" leaves in the cache, in bytes. */
unsigned long bmm_zero_cached_max;

typedef void bmm_zero_fn(void *at, size_t len);

static struct bmm_pick picks[KINDS];
static struct bmm_zero zeroes[KINDS]; /* in the order of zero_kind() */

static unsigned int zero_kind(enum bmm_op op, size_t len)
{
	return 2 * (op == BMM_CLEAR_STREAMING) +
	       (len > READ_ONCE(bmm_zero_cached_max));
}

static void zero_settle(struct work_struct *work);
static DECLARE_WORK(zero_work, zero_settle);

/* Whoever meets a pick that is decided and not settled yet has it settled. */
static void zero_check(const struct bmm_zero *zero)
{
	if (!READ_ONCE(zero->serves) && bmm_pick_decided(zero->pick) &&
	    !in_nmi())
		schedule_work(&zero_work);
}

/* What a static call leads to before it is patched: who comes late is served. */
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

/* A backend that was decided on; what is @settled is served by its @point. */
static struct {
	void (*point)(bmm_zero_fn *to);
	const struct bmm_backend *pointed;
	bool settled;
} frozen[KINDS] = {
	{ .point = zero_point_0 },
	{ .point = zero_point_1 },
	{ .point = zero_point_2 },
	{ .point = zero_point_3 },
};

/* Of those that can be forced only one is no candidate: generic, streaming. */
static struct bmm_zero_by *zero_by(struct bmm_zero *zero,
				   const struct bmm_backend *backend)
{
	struct bmm_zero_by *by = zero->by;

	while (by < zero->by + BMM_CANDIDATES && by->backend != backend)
		by++;
	by->backend = backend;
	return by;
}

static void zero_freeze(unsigned int kind)
{
	struct bmm_zero *zero = &zeroes[kind];
	const struct bmm_backend *backend = bmm_pick_backend(zero->pick,
							     zero->op);

	if (frozen[kind].pointed != backend)
		frozen[kind].point(zero->op == BMM_CLEAR ?
					   backend->clear :
					   backend->clear_streaming);
	frozen[kind].pointed = backend;
	WRITE_ONCE(zero->serves, zero_by(zero, backend));
	WRITE_ONCE(frozen[kind].settled, true);
	bmm_picks_log(&bmm_clear_path, &bmm_zero_picks[kind / 2], kind % 2);
}

static void zero_settle(struct work_struct *work)
{
	unsigned int kind;

	guard(mutex)(&bmm_picks_lock);
	for (kind = 0; kind < KINDS; kind++)
		if (!zeroes[kind].serves && bmm_pick_decided(zeroes[kind].pick))
			zero_freeze(kind);
}

/* A backend is forced from now on, or all are measured again. */
static void zero_changed(const struct bmm_picks *changed)
{
	unsigned int kind = 2 * (changed - bmm_zero_picks), end = kind + 2;
	struct bmm_zero *zero;

	for (; kind < end; kind++) {
		zero = &zeroes[kind];
		WRITE_ONCE(frozen[kind].settled, false);
		WRITE_ONCE(zero->serves,
			   changed->forced ? zero_by(zero, changed->forced) :
					     NULL);
	}
	bmm_zero_forget_units();
}

static void zero_label(unsigned int which, char *buf, size_t size)
{
	scnprintf(buf, size, "%s %lu", which ? "above" : "up to",
		  READ_ONCE(bmm_zero_cached_max));
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

/*
 * This CPU's share of the last-level cache in bytes, or 0: not known under some
 * hypervisors, and arm64 does not tell modules.
 */
static unsigned long zero_cache_share(void)
{
#ifdef CONFIG_X86_64
	unsigned int me = raw_smp_processor_id(), sharing = 0, cpu;

	for_each_online_cpu(cpu)
	{
		if (cpu_data(cpu).topo.llc_id == cpu_data(me).topo.llc_id)
			sharing++;
	}
	return boot_cpu_data.x86_cache_size * 1024UL / max(sharing, 1U);
#else
	return 0;
#endif
}

/** bmm_zero_init() - before any path may zero; what users tune comes later */
void bmm_zero_init(void)
{
	struct bmm_zero *zero;
	unsigned int kind, k;

	/* What a fault brings in is always worth a place in the cache. */
	bmm_zero_cached_max = max(zero_cache_share(), PMD_SIZE);
	for (kind = 0; kind < KINDS; kind++) {
		zero = &zeroes[kind];
		zero->op = bmm_zero_picks[kind / 2].op;
		zero->pick = &picks[kind];
		for (k = 0; k < BMM_CANDIDATES; k++)
			zero->by[k].backend = bmm_candidate(zero->op, k);
	}
}

/** bmm_zero_exit() - when nobody zeroes, or writes to sysfs, any more */
void bmm_zero_exit(void)
{
	cancel_work_sync(&zero_work);
}

/**
 * bmm_zero_op() - whether memory is left in the cache
 * @bytes:      how much
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

/* By what is forced, or as a sample. */
static void zero_unsettled(struct bmm_zero *zero, void *at, size_t len)
{
	struct bmm_job job = { .op = zero->op, .dst = at, .len = len };
	const struct bmm_zero_by *by = READ_ONCE(zero->serves);

	if (by) {
		bmm_job_do(&job, by->backend);
	} else {
		bmm_turn_job(zero->pick, &job);
		zero_check(zero);
	}
}

/**
 * bmm_zero() - zero an extent
 * @op:  BMM_CLEAR or BMM_CLEAR_STREAMING
 * @at:  where
 * @len: bytes
 *
 * Drained.
 */
void bmm_zero(enum bmm_op op, void *at, size_t len)
{
	unsigned int kind = zero_kind(op, len);

	if (unlikely(!READ_ONCE(frozen[kind].settled)))
		zero_unsettled(&zeroes[kind], at, len);
	else if (kind == 0)
		static_call(bmm_zero_0)(at, len);
	else if (kind == 1)
		static_call(bmm_zero_1)(at, len);
	else if (kind == 2)
		static_call(bmm_zero_2)(at, len);
	else
		static_call(bmm_zero_3)(at, len);
	if (bmm_op_streams(op))
		bmm_drain_stores();
}

/**
 * bmm_zero_unit() - zero as much of an extent as a time allows
 * @op:     BMM_CLEAR or BMM_CLEAR_STREAMING
 * @extent: bytes of all of it
 * @at:     where to go on
 * @left:   bytes from there on
 * @ns:     the time
 *
 * Return: bytes that were zeroed, drained (bmm_unit_clear()).
 */
size_t bmm_zero_unit(enum bmm_op op, size_t extent, char *at, size_t left,
		     u64 ns)
{
	struct bmm_zero *zero = &zeroes[zero_kind(op, extent)];
	size_t n = bmm_unit_clear(zero, at, left, ns);

	zero_check(zero);
	return n;
}

/**
 * bmm_zero_serving() - who zeroes
 * @op:  BMM_CLEAR or BMM_CLEAR_STREAMING
 * @len: bytes of the extent
 *
 * Return: the name of the backend; while it is measured, of the fastest so far.
 */
const char *bmm_zero_serving(enum bmm_op op, size_t len)
{
	const struct bmm_zero *zero = &zeroes[zero_kind(op, len)];
	const struct bmm_zero_by *by = READ_ONCE(zero->serves);

	return by ? by->backend->name : bmm_pick_backend(zero->pick, op)->name;
}

/** bmm_zero_forget_units() - what was known of units may not hold any more */
void bmm_zero_forget_units(void)
{
	unsigned int kind;

	for (kind = 0; kind < KINDS; kind++)
		bmm_unit_forget(&zeroes[kind]);
}
