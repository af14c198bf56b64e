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

/**
 * struct bmm_walk - a walk: is every pageblock of a zone whole?
 * @start:     first PFN that the zone spans
 * @end:       one past the last
 * @pageblock: PFNs of a pageblock, a power of two
 * @whole:     the kernel's answer for one pageblock, cut to the span
 * @zone:      the zone, for @whole
 */
struct bmm_walk {
	unsigned long start;
	unsigned long end;
	unsigned long pageblock;
	bool (*whole)(void *zone, unsigned long start, unsigned long end);
	void *zone;
};

/**
 * struct bmm_walk_change - what has changed since the last walk
 * @start: first PFN of the range that joined the zone or left it
 * @end:   one past the last; @start if unknown
 * @stays: the range left the zone, and until then the answer was yes
 */
struct bmm_walk_change {
	unsigned long start;
	unsigned long end;
	bool stays;
};

enum bmm_walk_answer {
	BMM_WALK_NO,
	BMM_WALK_YES,
	BMM_WALK_UNKNOWN, /* the walk has to be done */
};

enum bmm_walk_answer bmm_walk_shortcut(const struct bmm_walk *walk,
				       const struct bmm_walk_change *change);

#endif
