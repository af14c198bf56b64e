// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which thread does which part of a range. The range is cut where its mappings
 * differ; each thread takes one slice at a time, in ascending order, its own
 * node's memory first.
 */
#include <string.h>

#include "populate.h"

#define SLICE_MAX (16 * MIB) /* milliseconds: time between checks of @stop */

static bool alike(const struct segment *a, const struct segment *b)
{
	return a->map.page == b->map.page && a->map.is == b->map.is &&
	       !memcmp(&a->nodes, &b->nodes, sizeof(a->nodes));
}

/* Adds a segment if it differs from the last; if full, extends the last. */
static void add_segment(struct crew *crew, const struct segment *one)
{
	unsigned int nr = crew->segments_nr;
	struct segment *last = &crew->segments[nr ? nr - 1 : 0];

	if (nr && alike(last, one))
		return;
	if (nr < SEGMENTS_MAX) {
		crew->segments[crew->segments_nr++] = *one;
		return;
	}
	if (one->map.page < last->map.page)
		last->map.page = one->map.page;
	last->map.is &= one->map.is;
}

/**
 * share_segments() - find the mappings of the range
 * @crew: the crew
 * @maps: from maps_open()
 *
 * A hole is joined to what precedes it: the kernel will report it.
 */
void share_segments(struct crew *crew, struct maps *maps)
{
	bool cheap = crew->end - crew->start < SMALL;
	struct segment one = { 0 };
	uintptr_t at = crew->start;
	unsigned int i;
	int here;

	crew->segments_nr = 0;
	while (at < crew->end && map_find(maps, at, cheap, &one.map) &&
	       one.map.start < crew->end) {
		one.next = one.map.start > at ? one.map.start : at;
		if (crew->on_node)
			SET_ADD(&one.nodes, crew->options.node);
		else if (crew->bound &&
			 (here = nodes_of((void *)one.next, &one.nodes)) >= 0)
			crew->node = here;
		add_segment(crew, &one);
		at = one.map.end;
	}
	if (!crew->segments_nr) /* unknown, or nothing is mapped */
		crew->segments_nr = 1;
	crew->segments[0].next = crew->start;
	for (i = 0; i + 1 < crew->segments_nr; i++)
		crew->segments[i].end = crew->segments[i + 1].next;
	crew->segments[i].end = crew->end;
}

static bool is_home(const struct crew *crew, const struct segment *segment,
		    unsigned int id)
{
	return !crew->bound || SET_HAS(&segment->nodes, crew->home[id]);
}

static struct segment *next_segment(struct crew *crew, unsigned int id)
{
	struct segment *segment, *other = NULL, *end;

	end = crew->segments + crew->segments_nr;
	for (segment = crew->segments; segment < end; segment++) {
		if (segment->next >= segment->end)
			continue;
		if (is_home(crew, segment, id))
			return segment;
		if (!other)
			other = segment;
	}
	return other;
}

/* Short while looking for the best number of threads, and towards the end. */
static size_t slice_len(const struct crew *crew)
{
	const struct grow *grow = &crew->grow;
	size_t left = crew->end - crew->start - crew->report.done;
	size_t len = left / (4 * grow->now);

	if (len > SLICE_MAX)
		len = SLICE_MAX;
	if (len < crew->huge ||
	    (grow->most > 1 && crew->report.done >= grow->again))
		len = crew->huge;
	return len;
}

/**
 * share_take() - the next slice for a thread
 * @crew:  the crew, locked
 * @id:    the thread
 * @slice: result
 *
 * Return: true if there is one for it.
 */
bool share_take(struct crew *crew, unsigned int id, struct slice *slice)
{
	struct segment *segment;
	size_t grain;

	if (crew->stop || id >= crew->grow.now)
		return false;
	segment = next_segment(crew, id);
	if (!segment)
		return false;
	grain = segment->map.page > crew->huge ? segment->map.page : crew->huge;
	slice->segment = segment;
	slice->from = segment->next;
	slice->to = (slice->from + slice_len(crew) + grain - 1) & ~(grain - 1);
	if (slice->to > segment->end || slice->to <= slice->from)
		slice->to = segment->end;
	segment->next = slice->to;
	return true;
}

/* Everything before the returned address is done for certain. */
uintptr_t share_reached(const struct crew *crew)
{
	uintptr_t least = crew->end;
	unsigned int i;

	if (crew->failure.error)
		least = crew->failure.failed;
	for (i = 0; i < crew->segments_nr; i++)
		if (crew->segments[i].next < crew->segments[i].end &&
		    crew->segments[i].next < least)
			least = crew->segments[i].next;
	return least;
}
