// SPDX-License-Identifier: GPL-2.0-only
/*
 * copy: copies huge pages in ascending order.
 *
 * copy_user_large_folio() copies a hugetlb page: for a write after fork(), for
 * a pinned page in fork(), for a UFFDIO_COPY that has to start again. Up to 4
 * MiB it goes page by page, towards the address that is about to be used
 * (process_huge_page() in mm/memory.c, 6.1 to 7.3). If that is at the start,
 * as it mostly is, it goes down, against the direction that prefetchers follow
 * best: half as fast. Here what follows the address is copied first, then
 * everything up to it, both upwards, so that its neighbourhood still comes
 * last. That stays in the cache. The rest bypasses it where this is faster:
 * nobody knows whether it is used at all.
 *
 * The source may be poisoned. What copies survives the machine check and
 * returns what is left. The original then copies all of it again, and reports
 * the page as it always does.
 *
 * Bypassing the cache saves reading the destination first: 1.6 times the rate
 * of REP MOVSB on Zen 3. It has its price: who uses all of the copy soon has to
 * fetch it from memory. So it must gain MARGIN.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/uaccess.h>

#include "../core/calibrate.h"
#include "../core/drain.h"
#include "../core/evict.h"
#include "compat/compat.h"
#include "faults.h"
#include "path.h"
#include "prototype.h"
#include "symbols.h"
#include "trace.h"

enum {
	FALLBACK_OFF = BMM_OWN, /* switched off after the trampoline's check */
	FALLBACK_SMALL,		/* too few pages to gain anything */
	FALLBACK_POISON, /* a machine check: memory of the source is broken */
};

/* x86-64 has no hugetlb page below 2 MiB; 64 KiB still gained (Zen 4). */
#define MIN_PAGES 16

/* Pages on each side of the address, as in folio_zero_user() (7.3). */
#define RADIUS 2

/* Bytes between two chances to reschedule: 0.1 ms at 2.5 GB/s. */
#define UNIT SZ_256K

#define MARGIN 115 /* percent */

/* What copies. None but the first leaves the destination in the cache. */
enum copy_method {
	METHOD_KERNEL, /* copy_mc_to_kernel(): REP MOVSB */
	METHOD_MOVNTI,
	METHOD_MOVNTI_T0,
	METHOD_MOVNTI_NTA,
	METHOD_MOVNTI_PAGES,
	METHODS
};

static const char *const names[METHODS] = {
	"kernel", "movnti", "movnti-t0", "movnti-nta", "movnti-pages",
};

/* The fastest of all and of those that bypass the cache, once measured. */
static enum copy_method fastest = METHOD_KERNEL,
			fastest_streaming = METHOD_MOVNTI;

/* x86/copy.S */
unsigned long bmm_copy_movnti(void *dst, const void *src, size_t len);
unsigned long bmm_copy_movnti_t0(void *dst, const void *src, size_t len);
unsigned long bmm_copy_movnti_nta(void *dst, const void *src, size_t len);
unsigned long bmm_copy_movnti_pages(void *dst, const void *src, size_t len);

/*
 * Copies whole cache lines, at least one; returns how many bytes are left
 * because of a machine check. Later stores become visible after these.
 */
static unsigned long copy_lines(enum copy_method method, void *dst,
				const void *src, size_t len)
{
	switch (method) {
#ifdef CONFIG_X86_64
	case METHOD_MOVNTI:
		return bmm_copy_movnti(dst, src, len);
	case METHOD_MOVNTI_T0:
		return bmm_copy_movnti_t0(dst, src, len);
	case METHOD_MOVNTI_NTA:
		return bmm_copy_movnti_nta(dst, src, len);
	case METHOD_MOVNTI_PAGES:
		return bmm_copy_movnti_pages(dst, src, len);
#endif
	default:
		return copy_mc_to_kernel(dst, src, len);
	}
}

/* ns of a copy of cold memory. */
static u64 copy_sample(void *buffer, unsigned int method)
{
	char *dst = buffer, *src = dst + BMM_CALIBRATE_EXTENT;
	u64 start;

	cond_resched();
	bmm_evict(dst, 2 * BMM_CALIBRATE_EXTENT);
	start = bmm_host_clock();
	copy_lines(method, dst, src, BMM_CALIBRATE_EXTENT);
	bmm_finish_stores();
	return bmm_host_clock() - start + 1;
}

/* Takes a few ms, once; without memory for a buffer, at the next attempt. */
static void copy_measure(void)
{
	static bool is_measured;
	char *buffer = NULL;
	u64 ns[METHODS];
	unsigned int method;

	if (is_measured)
		return;
	if (!bmm_fault("nomem"))
		buffer = kvmalloc(2 * BMM_CALIBRATE_EXTENT,
				  GFP_KERNEL | __GFP_NOWARN);
	if (!buffer) {
		pr_warn("copy: no memory to measure with, %s serves\n",
			names[fastest]);
		return;
	}
	bmm_measure_costs(copy_sample, buffer, METHODS, ns);
	kvfree(buffer);
	is_measured = true;
	for (method = METHOD_MOVNTI; method < METHODS; method++)
		if (ns[method] < ns[fastest_streaming])
			fastest_streaming = method;
	if (ns[fastest_streaming] * MARGIN < ns[METHOD_KERNEL] * 100)
		fastest = fastest_streaming;
	for (method = 0; method < METHODS; method++)
		ns[method] = BMM_CALIBRATE_EXTENT * 1000 / ns[method];
	pr_info("copy: kernel %llu, movnti %llu, -t0 %llu, -nta %llu, -pages %llu MB/s: %s serves\n",
		ns[0], ns[1], ns[2], ns[3], ns[4], names[fastest]);
}

static enum copy_method copy_choose_method(int mode)
{
	if (mode == BMM_STREAMING)
		return fastest_streaming;
	return mode == BMM_CACHED ? METHOD_KERNEL : fastest;
}

/* Copies bytes @at to @end of a folio; returns how many are left. */
static unsigned long copy_range(enum copy_method method, struct folio *dst,
				struct folio *src, size_t at, size_t end)
{
	unsigned long remaining = 0;
	size_t n;

	for (; at < end && !remaining; at += n) {
		cond_resched();
		n = min(UNIT, end - at);
		remaining = copy_lines(method, folio_address(dst) + at,
				       folio_address(src) + at, n);
	}
	return remaining;
}

static unsigned long copy_folio(enum copy_method method, struct folio *dst,
				struct folio *src, unsigned long addr_hint)
{
	size_t bytes = folio_size(dst);
	size_t hint = PAGE_ALIGN_DOWN(addr_hint) & (bytes - 1);
	size_t from = hint - min(hint, RADIUS * PAGE_SIZE);
	size_t to = min(hint + (1 + RADIUS) * PAGE_SIZE, bytes);
	u64 start = ktime_get_mono_fast_ns(), ns;
	unsigned long remaining;

	remaining = copy_range(method, dst, src, to, bytes);
	if (!remaining)
		remaining = copy_range(method, dst, src, 0, from);
	if (!remaining)
		remaining = copy_range(METHOD_KERNEL, dst, src, from, to);
	ns = ktime_get_mono_fast_ns() - start;
	if (!remaining)
		bmm_path_served(&bmm_copy_path, bytes, ns);
	trace_copy(dst, src, ns, !remaining);
	return remaining;
}

/* Copies; returns a reason to fall back to the original, or -1. */
static int copy_serve(struct folio *dst, struct folio *src,
		      unsigned long addr_hint)
{
	int mode = READ_ONCE(bmm_copy_path.mode);

	if (mode == BMM_OFF)
		return FALLBACK_OFF;
	if (1UL << folio_order(dst) < MIN_PAGES)
		return FALLBACK_SMALL;
	if (copy_folio(copy_choose_method(mode), dst, src, addr_hint))
		return FALLBACK_POISON;
	return -1;
}

static int copy_handle(struct folio *dst, struct folio *src,
		       unsigned long addr_hint, struct vm_area_struct *vma)
{
	int reason, err = 0;

	bmm_path_enter(&bmm_copy_path);
	might_sleep(); /* counted first, as in clear.c */
	reason = copy_serve(dst, src, addr_hint);
	if (reason >= 0) {
		bmm_path_count(&bmm_copy_path, reason, 1);
		err = bmm_copy_by_kernel(dst, src, addr_hint, vma);
	}
	bmm_path_leave(&bmm_copy_path);
	return err;
}

/* Entered from the trampoline in place of copy_user_large_folio(). */
BMM_COPY_HANDLER(copy_handle)

/* Set where a machine check in REP MOVSB cannot be survived (copy_mc.c). */
#define FRAGILE "copy_mc_fragile_key"

/* Such platforms copy word by word: nothing to gain, more to lose. */
static int copy_prepare(void)
{
	long key;

	if (IS_ENABLED(CONFIG_X86_MCE)) { /* else none is survived */
		key = bmm_symbol_data(FRAGILE);
		if (IS_ERR_VALUE(key))
			return key;
		if (static_key_enabled((struct static_key *)key))
			return -EOPNOTSUPP;
	}
	copy_measure();
	return 0;
}

struct bmm_path bmm_copy_path = {
	BMM_PATH_NAMED(copy),
	.prepare = copy_prepare,
	.prepare_symbol = FRAGILE,
	.hooks = { { BMM_HOOK(copy) } },
	.names[BMM_NS] = "ns",
	.names[FALLBACK_OFF] = "fallback_off",
	.names[FALLBACK_SMALL] = "fallback_small",
	.names[FALLBACK_POISON] = "fallback_poison",
};
