/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotplug_walk.h - the answer of the walk over a zone's pageblocks, without it
 *
 * Needs nothing of the kernel: the tests run it against simulated zones.
 */
#ifndef BMM_HOTPLUG_WALK_H
#define BMM_HOTPLUG_WALK_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

struct zone;

/**
 * struct bmm_walk - a walk: is every pageblock of a zone whole?
 * @zone:      the zone
 * @start:     first PFN that it spans
 * @end:       one past the last
 * @pageblock: PFNs of a pageblock, a power of two
 */
struct bmm_walk {
	struct zone *zone;
	unsigned long start;
	unsigned long end;
	unsigned long pageblock;
};

/**
 * struct bmm_walk_change - what has changed since the last walk
 * @start: first PFN of the range that joined the zone or left it
 * @end:   one past the last; @start if unknown
 * @was_contiguous: the range left the zone, and until then the answer was yes
 */
struct bmm_walk_change {
	unsigned long start;
	unsigned long end;
	bool was_contiguous;
};

enum bmm_walk_answer {
	BMM_WALK_NO,
	BMM_WALK_YES,
	BMM_WALK_UNKNOWN, /* the walk has to be done */
};

/* The kernel's answer for one pageblock, cut to the span: hotplug.c, tests. */
bool bmm_walk_whole(struct zone *zone, unsigned long start, unsigned long end);

enum bmm_walk_answer bmm_walk_shortcut(const struct bmm_walk *walk,
				       const struct bmm_walk_change *change);

#endif
