// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long clearing went on without a chance to reschedule, by order of the
 * folio: the longest time, and how many units took more than what was promised.
 * By the clock on the wall: interrupts, and a hypervisor that takes the CPU
 * away, lengthen what is seen here.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sysfs.h>

#include "clear_gap.h"

#define ORDERS (PUD_SHIFT - PAGE_SHIFT + 1)

static struct {
	atomic64_t longest; /* ns */
	atomic64_t folios;
	atomic64_t units;
	atomic64_t over;
} seen[ORDERS];

/**
 * bmm_gap_note() - a unit was cleared
 * @gaps: of the folio it is a part of
 * @ns:   the time it took
 * @most: what it may take
 */
void bmm_gap_note(struct bmm_gaps *gaps, u64 ns, u64 most)
{
	gaps->longest = max(gaps->longest, ns);
	gaps->units++;
	gaps->over += ns > most;
}

/**
 * bmm_gap_account() - a folio was cleared
 * @order: its order
 * @gaps:  of its units; none on a kernel that preempts
 */
void bmm_gap_account(unsigned int order, const struct bmm_gaps *gaps)
{
	unsigned int i = min(order, ORDERS - 1U);
	s64 longest = atomic64_read(&seen[i].longest);

	atomic64_inc(&seen[i].folios);
	atomic64_add(gaps->units, &seen[i].units);
	atomic64_add(gaps->over, &seen[i].over);
	while ((s64)gaps->longest > longest &&
	       !atomic64_try_cmpxchg(&seen[i].longest, &longest, gaps->longest))
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
				"order %u: max_gap_ns %lld count %lld units %lld over %lld\n",
				i, atomic64_read(&seen[i].longest),
				atomic64_read(&seen[i].folios),
				atomic64_read(&seen[i].units),
				atomic64_read(&seen[i].over));
	return at;
}

/* Whatever is written: count from here. */
ssize_t bmm_gap_store(struct bmm_path *path, unsigned int index,
		      const char *buf, size_t len)
{
	unsigned int i;

	for (i = 0; i < ORDERS; i++) {
		atomic64_set(&seen[i].longest, 0);
		atomic64_set(&seen[i].folios, 0);
		atomic64_set(&seen[i].units, 0);
		atomic64_set(&seen[i].over, 0);
	}
	return len;
}
