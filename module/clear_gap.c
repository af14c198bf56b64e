// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long clearing goes on without a chance to reschedule: what fits into a
 * wanted time by the rate seen lately, and the longest that was seen.
 */
#include <linux/align.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sysfs.h>

#include "clear_gap.h"

#define ORDERS (PUD_SHIFT - PAGE_SHIFT + 1)

/* Until something is measured: 1 GB/s, which any machine does. */
#define SLOW 1000UL

/* Bytes per us, by operation; racing CPUs lose each other's samples. */
static unsigned long rate[BMM_OPS];

static struct {
	atomic64_t longest; /* ns */
	atomic64_t folios;
} seen[ORDERS];

/**
 * bmm_gap_bytes() - what is cleared in so much time
 * @op: BMM_CLEAR or BMM_CLEAR_STREAMING
 * @us: the time
 *
 * Return: bytes, whole pages, at least one.
 */
size_t bmm_gap_bytes(enum bmm_op op, unsigned long us)
{
	unsigned long known = READ_ONCE(rate[op]);
	size_t bytes = (known ? known : SLOW) * us;

	return max(ALIGN_DOWN(bytes, PAGE_SIZE), PAGE_SIZE);
}

/**
 * bmm_gap_learn() - a range was cleared without a chance to reschedule
 * @op:    how
 * @bytes: its length
 * @ns:    the time it took
 *
 * Slower counts at once, faster by an eighth: the wanted time is a bound.
 */
void bmm_gap_learn(enum bmm_op op, size_t bytes, u64 ns)
{
	unsigned long now = div64_u64((u64)bytes * 1000, max(ns, 1ULL));
	unsigned long known = READ_ONCE(rate[op]);

	if (known && now > known)
		now = known + (now - known) / 8;
	WRITE_ONCE(rate[op], max(now, 1UL));
}

/**
 * bmm_gap_account() - a folio was cleared
 * @order: its order
 * @ns:    the longest time in it without a chance to reschedule
 */
void bmm_gap_account(unsigned int order, u64 ns)
{
	unsigned int i = min(order, ORDERS - 1U);
	s64 longest = atomic64_read(&seen[i].longest);

	atomic64_inc(&seen[i].folios);
	while ((s64)ns > longest &&
	       !atomic64_try_cmpxchg(&seen[i].longest, &longest, ns))
		;
}

/* A line for each order that was seen. */
ssize_t bmm_gap_show(struct bmm_path *path, unsigned int index, char *buf)
{
	ssize_t at = 0;
	unsigned int i;

	for (i = 0; i < ORDERS; i++)
		if (atomic64_read(&seen[i].folios))
			at += sysfs_emit_at(
				buf, at,
				"order %u: max_gap_ns %lld count %lld\n", i,
				atomic64_read(&seen[i].longest),
				atomic64_read(&seen[i].folios));
	return at;
}
