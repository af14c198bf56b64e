// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which thread does which part of a range. The range is cut where its mappings
 * differ; each thread takes one slice at a time, in ascending order, its own
 * node's memory first.
 */
#include <string.h>

#include "populate.h"

/* If there is no room for it, the last is extended, of which less is known. */
static void add_segment(struct crew *crew, const struct segment *segment)
{
	unsigned int nr = crew->segments_nr;
	struct segment *last;

	if (nr == crew->segments_most && !crew->room)
		crew_expand(crew);
	if (nr < crew->segments_most) {
		crew->segments[crew->segments_nr++] = *segment;
		return;
	}
	last = &crew->segments[nr - 1];
	if (segment->map.page < last->map.page)
		last->map.page = segment->map.page;
	last->cold |= segment->cold;
	last->map.is = (last->map.is | segment->map.is) & READ_AHEAD;
}

/* A file of which the system does not tell what has been read is cold. */
static bool is_cold(const struct segment *segment, uintptr_t from, uintptr_t to)
{
	if (!(segment->map.is & READ_AHEAD))
		return false;
	return !(segment->map.is & CACHE_SEEN) || !pages_cached(from, to);
}

/* Whether there is nothing in the range that several threads may do. */
bool share_is_cold(const struct crew *crew)
{
	unsigned int i;

	for (i = 0; i < crew->segments_nr; i++)
		if (!crew->segments[i].cold)
			return false;
	return true;
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
	struct segment segment;
	uintptr_t at = crew->start;
	unsigned int i;
	int here;

	crew->segments_nr = 0;
	for (; at < crew->end; at = segment.map.end) {
		memset(&segment, 0, sizeof(segment));
		if (!map_find(maps, at, cheap, &segment.map) ||
		    segment.map.start >= crew->end)
			break;
		segment.next = segment.map.start > at ? segment.map.start : at;
		segment.cold = is_cold(&segment, segment.next, segment.next + 1);
		if (crew->on_node)
			SET_ADD(&segment.nodes, crew->options.node);
		else if (crew->bound && (here = nodes_of((void *)segment.next,
							 &segment.nodes)) >= 0)
			crew->node = here;
		add_segment(crew, &segment);
	}
	if (!crew->segments_nr) /* unknown, or nothing is mapped */
		crew->segments_nr = 1;
	crew->segments[0].next = crew->start;
	for (i = 0; i + 1 < crew->segments_nr; i++)
		crew->segments[i].end = crew->segments[i + 1].next;
	crew->segments[i].end = crew->end;
}

static bool is_home(const struct segment *segment, const struct worker *worker)
{
	return !worker->crew->bound || SET_HAS(&segment->nodes, worker->home);
}

static struct segment *next_segment(const struct crew *crew,
				    const struct worker *worker)
{
	struct segment *segment, *other = NULL, *end;

	end = crew->segments + crew->segments_nr;
	for (segment = crew->segments; segment < end; segment++) {
		if (segment->next >= segment->end ||
		    (segment->cold && crew->reading))
			continue;
		if (is_home(segment, worker))
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

static void cut(const struct crew *crew, struct segment *segment,
		struct slice *slice)
{
	size_t grain = segment->map.page;

	if (grain < crew->huge)
		grain = crew->huge;
	slice->segment = segment;
	slice->from = segment->next;
	slice->to = (slice->from + slice_len(crew) + grain - 1) & ~(grain - 1);
	if (slice->to > segment->end || slice->to <= slice->from)
		slice->to = segment->end;
}

/**
 * share_take() - the next slice for a thread
 * @crew:   the crew, locked
 * @worker: the thread
 * @slice:  result
 *
 * What has to be read from a file is read in ascending order, by one thread at
 * a time: readahead goes by the file, and does not follow two. A segment that
 * turns out to be such a file stays one: what is read ahead looks as if it had
 * been in the cache.
 *
 * Return: true if there is one for it.
 */
bool share_take(struct crew *crew, const struct worker *worker,
		struct slice *slice)
{
	struct segment *segment;

	if (crew->stop || worker->id >= crew->grow.now)
		return false;
	while ((segment = next_segment(crew, worker))) {
		cut(crew, segment, slice);
		if (crew->grow.most > 1 && !segment->cold)
			segment->cold = is_cold(segment, slice->from, slice->to);
		if (!segment->cold || !crew->reading)
			break;
	}
	if (!segment)
		return false;
	slice->cold = segment->cold;
	crew->reading |= slice->cold;
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
