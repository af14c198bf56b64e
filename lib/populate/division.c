// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which thread does which part of the ranges. They are cut where their mappings
 * differ; each thread takes one slice at a time, in ascending order, its own
 * node's memory first.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "populate.h"

/**
 * add_extent() - add a range, in ascending order of addresses
 * @workers: from workers_init(), for at least as many
 * @extent:  whole pages
 *
 * Return: 0, or -EEXIST if it overlaps another.
 */
int add_extent(struct workers *workers, const struct extent *extent)
{
	struct extent *at = workers->extents + workers->extents_nr;

	for (; at > workers->extents && at[-1].start >= extent->start; at--)
		;
	if ((at > workers->extents && at[-1].end > extent->start) ||
	    (at < workers->extents + workers->extents_nr &&
	     at->start < extent->end))
		return -EEXIST;
	memmove(at + 1, at,
		(size_t)((char *)(workers->extents + workers->extents_nr) -
			 (char *)at));
	*at = *extent;
	workers->extents_nr++;
	workers->len += extent->end - extent->start;
	workers->binds |= extent->bind >= 0;
	return 0;
}

/* The range of an address; one that is in none is behind the last before it. */
const struct extent *extent_at(const struct workers *workers, uintptr_t addr)
{
	const struct extent *at = workers->extents + workers->extents_nr - 1;

	while (at > workers->extents && at->start > addr)
		at--;
	return at;
}

/*
 * @left: segments to be kept for other ranges. If there is no room for it, the
 * last is extended, of which less is known.
 */
static void add_segment(struct workers *workers, const struct segment *segment,
			unsigned int left)
{
	unsigned int nr = workers->segments_nr;
	struct segment *last;

	if (nr == workers->segments_max && !workers->memory)
		workers_expand(workers);
	if (nr + left < workers->segments_max) {
		workers->segments[workers->segments_nr++] = *segment;
		return;
	}
	last = &workers->segments[nr - 1];
	if (segment->map.page < last->map.page)
		last->map.page = segment->map.page;
	last->cold |= segment->cold;
	last->map.flags = (last->map.flags | segment->map.flags) & READ_AHEAD;
}

/* A file of which the system does not tell what has been read is cold. */
static bool is_cold(const struct segment *segment, uintptr_t from, uintptr_t to)
{
	if (!(segment->map.flags & READ_AHEAD))
		return false;
	return !(segment->map.flags & CACHE_SEEN) || !pages_cached(from, to);
}

/* Whether there is nothing in the range that several threads may do. */
bool is_all_cold(const struct workers *workers)
{
	unsigned int i;

	for (i = 0; i < workers->segments_nr; i++)
		if (!workers->segments[i].cold)
			return false;
	return true;
}

/* The nodes that its pages come from. */
static void find_nodes(struct workers *workers, struct segment *segment)
{
	int local;

	if (segment->bind >= 0) {
		SET_ADD(&segment->nodes, segment->bind);
	} else if (workers->bound) {
		local = nodes_of((void *)segment->next, &segment->nodes);
		if (local >= 0)
			workers->node = local;
	}
}

/* A hole is joined to what precedes it: the kernel will report it. */
static void divide_extent(struct workers *workers, struct maps *maps,
			  const struct extent *extent, unsigned int left)
{
	bool cheap = workers->len < SMALL;
	unsigned int first = workers->segments_nr, i;
	struct segment segment;
	uintptr_t at = extent->start;

	for (; maps && at < extent->end; at = segment.map.end) {
		memset(&segment, 0, sizeof(segment));
		if (!map_find(maps, at, cheap, &segment.map) ||
		    segment.map.start >= extent->end)
			break;
		segment.next = segment.map.start > at ? segment.map.start : at;
		segment.bind = extent->bind;
		segment.cold = is_cold(&segment, segment.next, segment.next + 1);
		find_nodes(workers, &segment);
		add_segment(workers, &segment, left);
	}
	if (workers->segments_nr == first) { /* unknown, or nothing is mapped */
		segment = (struct segment){ .bind = extent->bind };
		segment.map.page = (size_t)sysconf(_SC_PAGESIZE);
		segment.next = extent->start;
		find_nodes(workers, &segment);
		add_segment(workers, &segment, left);
	}
	workers->segments[first].next = extent->start;
	for (i = first; i + 1 < workers->segments_nr; i++)
		workers->segments[i].end = workers->segments[i + 1].next;
	workers->segments[i].end = extent->end;
}

/**
 * find_segments() - find the mappings of the ranges
 * @workers: the workers
 * @maps:    from maps_open(), at its start; or NULL
 */
void find_segments(struct workers *workers, struct maps *maps)
{
	unsigned int i;

	workers->segments_nr = 0;
	for (i = 0; i < workers->extents_nr; i++)
		divide_extent(workers, maps, &workers->extents[i],
			      workers->extents_nr - i - 1);
}

static bool is_home(const struct segment *segment, const struct worker *worker)
{
	return !worker->workers->bound ||
	       SET_HAS(&segment->nodes, worker->home);
}

static struct segment *next_segment(const struct workers *workers,
				    const struct worker *worker)
{
	struct segment *segment, *other = NULL, *end;

	end = workers->segments + workers->segments_nr;
	for (segment = workers->segments; segment < end; segment++) {
		if (segment->next >= segment->end ||
		    (segment->cold && workers->reading))
			continue;
		if (is_home(segment, worker))
			return segment;
		if (!other)
			other = segment;
	}
	return other;
}

/* Short while looking for the best number of threads, and towards the end. */
static size_t slice_len(const struct workers *workers)
{
	const struct scaling *scaling = &workers->scaling;
	size_t left = workers->len - workers->report.done;
	size_t len = left / (4 * scaling->now);

	if (len > SLICE_MAX)
		len = SLICE_MAX;
	if (len < workers->huge ||
	    (scaling->most > 1 && workers->report.done >= scaling->retry_at))
		len = workers->huge;
	return len;
}

static void cut(const struct workers *workers, struct segment *segment,
		struct slice *slice)
{
	size_t grain = segment->map.page;

	if (grain < workers->huge)
		grain = workers->huge;
	slice->segment = segment;
	slice->from = segment->next;
	slice->to = (slice->from + slice_len(workers) + grain - 1) &
		    ~(grain - 1);
	if (slice->to > segment->end || slice->to <= slice->from)
		slice->to = segment->end;
}

/* The caller has the first of the numbers, but where it passes pieces. */
static bool is_needed(const struct workers *workers, const struct worker *worker)
{
	if (workers->passes)
		return worker->id && worker->id <= workers->scaling.now;
	return worker->id < workers->scaling.now;
}

/**
 * take_slice() - the next slice for a thread
 * @workers: the workers, locked
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
bool take_slice(struct workers *workers, const struct worker *worker,
		struct slice *slice)
{
	struct segment *segment;

	if (workers->stop || !is_needed(workers, worker))
		return false;
	while ((segment = next_segment(workers, worker))) {
		cut(workers, segment, slice);
		if (workers->scaling.most > 1 && !segment->cold)
			segment->cold = is_cold(segment, slice->from, slice->to);
		if (!segment->cold || !workers->reading)
			break;
	}
	if (!segment)
		return false;
	slice->cold = segment->cold;
	slice->small = segment->small.advised &&
		       slice->from >= segment->small.from;
	workers->reading |= slice->cold;
	segment->next = slice->to;
	return true;
}

/* Everything before the returned address is done for certain. */
uintptr_t reached_address(const struct workers *workers)
{
	uintptr_t least = workers->extents[workers->extents_nr - 1].end;
	unsigned int i;

	if (workers->failure.error)
		least = workers->failure.failed;
	for (i = 0; i < workers->segments_nr; i++)
		if (workers->segments[i].next < workers->segments[i].end &&
		    workers->segments[i].next < least)
			least = workers->segments[i].next;
	return least;
}
