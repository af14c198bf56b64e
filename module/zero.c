// SPDX-License-Identifier: GPL-2.0-only
/* Zeroing for the paths that clear: whether memory is left in the cache. */
#include <linux/cleanup.h>
#include <linux/preempt.h>
#include <linux/sizes.h>
#include <linux/smp.h>

#include "../core/drain.h"
#include "../core/x86/llc.h"
#include "compat/compat.h"
#include "select.h"
#include "zero.h"

/* The largest page that mode auto leaves in the cache, in bytes. */
unsigned long bmm_zero_cached_max;

/*
 * This CPU's share of the last-level cache in bytes, or 0 if unknown: under
 * some hypervisors, and to modules on arm64. Size and sharers are those of one
 * CPU, as the caches of a machine may differ.
 */
static unsigned long zero_cache_share(void)
{
#ifdef CONFIG_X86_64
	unsigned int sharing = 0, me, cpu;

	guard(preempt)();
	me = smp_processor_id();
	for_each_online_cpu(cpu)
	{
		if (bmm_llc_id(cpu) == bmm_llc_id(me))
			sharing++;
	}
	return bmm_x86_llc() / max(sharing, 1U);
#else
	return 0;
#endif
}

/** bmm_zero_init() - ask for the cache, before paths may zero and users may tune */
void bmm_zero_init(void)
{
	/* Memory that a fault brings in is always worth its place. */
	bmm_zero_cached_max = max(zero_cache_share(), SZ_2M);
}

/**
 * bmm_zero_op() - decide whether memory is left in the cache
 * @bytes:      its size
 * @mode:       enum bmm_store_mode
 * @populating: whether it is prepared ahead of use
 *
 * Return: BMM_CLEAR or BMM_CLEAR_STREAMING.
 */
enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating)
{
	if (mode == BMM_CACHED)
		return BMM_CLEAR;
	if (mode == BMM_STREAMING || populating)
		return BMM_CLEAR_STREAMING;
	return bytes > READ_ONCE(bmm_zero_cached_max) ? BMM_CLEAR_STREAMING :
							BMM_CLEAR;
}

/**
 * bmm_zero() - zero an extent, with the backend that is selected
 * @path: the path to account streamed bytes to; it counts the rest itself
 * @op:   BMM_CLEAR or BMM_CLEAR_STREAMING
 * @at:   where; drained when this returns
 * @len:  bytes, at least 1
 *
 * Context: any, an NMI included.
 */
void bmm_zero(struct bmm_path *path, enum bmm_op op, void *at, size_t len)
{
	if (op == BMM_CLEAR) {
		static_call(bmm_selected_cached)(at, len);
		return;
	}
	static_call(bmm_selected_streaming)(at, len);
	bmm_drain_stores();
	bmm_path_count(path, BMM_ZERO_STREAMED, len);
}
