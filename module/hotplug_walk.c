// SPDX-License-Identifier: GPL-2.0-only
/*
 * A walk answers yes if every pageblock of the zone is whole. The order does
 * not matter, so the likeliest "no" comes first:
 *
 * - the range that has just changed. One that joins the zone is not online yet,
 *   one that left it no longer is; unless the zone's span shrank with it, its
 *   pageblocks are part of the walk.
 * - the last pageblock: memory added without our knowledge is most often there.
 *
 * "Yes" can be known without a walk only if it was the answer before: what left
 * is outside the span now, so the remaining pageblocks were all whole. None has
 * changed since, because whoever changes one asks for a new walk, and the
 * kernel allows one at a time.
 */
#include "hotplug_walk.h"

/* Checks the pageblock that holds @pfn, cut to the span, as the walk does. */
static bool walk_whole_at(const struct bmm_walk *walk, unsigned long pfn)
{
	unsigned long start = pfn & ~(walk->pageblock - 1);
	unsigned long end = start + walk->pageblock;

	if (start < walk->start)
		start = walk->start;
	if (end > walk->end)
		end = walk->end;
	return bmm_walk_whole(walk->zone, start, end);
}

static bool walk_holds(const struct bmm_walk *walk, unsigned long pfn)
{
	return walk->start <= pfn && pfn < walk->end;
}

/*
 * The answer of a walk, if a few pageblocks decide it. What has changed is only
 * a hint where to start, except was_contiguous.
 */
enum bmm_walk_answer bmm_walk_shortcut(const struct bmm_walk *walk,
				       const struct bmm_walk_change *change)
{
	unsigned long first = change->start, last = change->end - 1;
	bool changed = change->start < change->end;

	if (changed && walk_holds(walk, first) && !walk_whole_at(walk, first))
		return BMM_WALK_NO;
	if (changed && walk_holds(walk, last) && !walk_whole_at(walk, last))
		return BMM_WALK_NO;
	if (change->was_contiguous && (last < walk->start || first >= walk->end))
		return BMM_WALK_YES;
	if (walk->start < walk->end && !walk_whole_at(walk, walk->end - 1))
		return BMM_WALK_NO;
	return BMM_WALK_UNKNOWN;
}
