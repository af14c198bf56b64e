// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is done, and has not been passed to the program: a set of intervals. It
 * stays small, however long the ranges are: slices are taken in ascending order
 * of each segment, so what separates two intervals is a slice in progress, the
 * end of what a segment has had taken, or pieces that were passed while such a
 * slice was within them.
 */
#include <string.h>
#include <unistd.h>

#include "populate.h"

#define PIECE (256 * MIB) /* documented */

static void insert(struct ready *ready, unsigned int at, uintptr_t from,
		   uintptr_t to)
{
	memmove(ready->pieces + at + 1, ready->pieces + at,
		(ready->nr - at) * sizeof(*ready->pieces));
	ready->pieces[at] = (struct piece){ from, to };
	ready->nr++;
}

static void delete(struct ready *ready, unsigned int at)
{
	ready->nr--;
	memmove(ready->pieces + at, ready->pieces + at + 1,
		(ready->nr - at) * sizeof(*ready->pieces));
}

/* Adds a slice; the workers are locked. */
void add_ready(struct workers *workers, uintptr_t from, uintptr_t to)
{
	struct ready *ready = &workers->ready;
	struct piece *pieces = ready->pieces;
	unsigned int at = ready->nr;

	while (at && pieces[at - 1].from > from)
		at--;
	if (at && pieces[at - 1].to == from)
		pieces[--at].to = to;
	else
		insert(ready, at, from, to);
	if (at + 1 < ready->nr && pieces[at].to == pieces[at + 1].from) {
		pieces[at].to = pieces[at + 1].to;
		delete(ready, at + 1);
	}
}

/* The end of the piece of a range that begins at @from, or contains it. */
static uintptr_t piece_end(const struct workers *workers,
			   const struct extent *extent, uintptr_t from)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       len = workers->options.piece;
	size_t done = from - extent->start, left = extent->end - from;

	len = len ? round_up(len, page) : PIECE;
	if (!len || len - done % len > left) /* !len: it has wrapped around */
		return extent->end;
	return from + (len - done % len);
}

/* The first whole piece in an interval, which may span ranges; false: none. */
static bool find_piece(const struct workers *workers, struct piece interval,
		       struct piece *piece)
{
	const struct extent *extent;
	uintptr_t end;

	while (interval.from < interval.to) {
		extent = extent_at(workers, interval.from);
		end = piece_end(workers, extent, interval.from);
		if (end > interval.to)
			return false;
		if (interval.from == extent->start ||
		    piece_end(workers, extent, interval.from - 1) ==
			    interval.from) {
			*piece = (struct piece){ interval.from, end };
			return true;
		}
		interval.from = end;
	}
	return false;
}

/* In order, the next piece begins here; where a range ends, with the next. */
static void advance(struct workers *workers, uintptr_t end)
{
	const struct extent *extent = extent_at(workers, end - 1);

	workers->ready.next = end;
	if (end == extent->end &&
	    extent + 1 < workers->extents + workers->extents_nr)
		workers->ready.next = extent[1].start;
}

/**
 * take_ready() - a whole piece that is done
 * @workers: the workers, locked
 * @piece:   result
 *
 * Return: true if there is one that may be passed now.
 */
bool take_ready(struct workers *workers, struct piece *piece)
{
	struct ready *ready = &workers->ready;
	struct piece interval;
	unsigned int i;

	for (i = 0; i < ready->nr; i++) {
		interval = ready->pieces[i];
		if (!find_piece(workers, interval, piece))
			continue;
		if (workers->options.flags & BMM_IN_ORDER &&
		    piece->from != ready->next)
			return false;
		delete(ready, i);
		if (piece->to < interval.to)
			insert(ready, i, piece->to, interval.to);
		if (interval.from < piece->from)
			insert(ready, i, interval.from, piece->from);
		advance(workers, piece->to);
		return true;
	}
	return false;
}
