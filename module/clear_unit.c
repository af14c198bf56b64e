// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much is cleared between two chances to reschedule: as much as fits into
 * a wanted time, by the clock.
 *
 * A unit is cleared in slices, and after each the clock is looked at: when
 * another slice like the last one would not fit any more, the unit is over. A
 * slice is what its backend has lately cleared in an eighth of the wanted time.
 * So a forecast may be wrong, by a factor of four even, and the unit still ends
 * within one and a half of the wanted time: at worst an eighth becomes a half.
 *
 * Who clears is known when the turn has begun, and not before: the chooser may
 * put a backend on trial in the middle of a page, one that is a hundred times
 * slower under emulation. So each has a forecast of its own. One of which
 * nothing is known begins with a page, and no slice is more than twice as long
 * as what was measured last.
 */
#include "clear_unit.h"

#define get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

#define SMALLEST 4096UL /* bytes of a slice: a page */
#define SLICES	 8	/* that fit into a unit */

/*
 * Bytes of a slice, 0 if nothing is known. CPUs that race lose each other's
 * samples: whichever is kept was measured.
 */
static size_t slices[BMM_OPS][BMM_CHOOSE_MAX];

static size_t *slice_of(enum bmm_op op, const struct bmm_backend *backend)
{
	size_t i = 0;

	while (bmm_backends[i] != backend)
		i++;
	return &slices[op][i];
}

static size_t known(const size_t *slice)
{
	size_t bytes = get(slice);

	return bytes ? bytes : SMALLEST;
}

/*
 * @n bytes took @ns, @wanted would be right. Slower counts at once; faster only
 * if all that was allowed was done, since a short rest proves little.
 */
static void learn(size_t *slice, size_t n, uint64_t ns, uint64_t wanted)
{
	size_t now = known(slice), fit = n * wanted / (ns ? ns : 1);

	if (fit > now && n < now)
		return;
	if (fit > 2 * now)
		fit = 2 * now;
	fit -= fit % SMALLEST;
	set(slice, fit ? fit : SMALLEST);
}

/* How far a unit has come. */
struct progress {
	char *at;
	size_t left;
	uint64_t begun;
	uint64_t now; /* when the clock was looked at last */
};

/* Returns the bytes of the next slice, which is cleared, and if it was the last. */
static size_t clear_slice(const struct bmm_unit *unit,
			  const struct bmm_backend *backend, struct progress *p,
			  size_t most, bool *over)
{
	size_t *slice = slice_of(unit->op, backend);
	size_t n = known(slice);
	uint64_t then = p->now;

	if (n > most)
		n = most;
	bmm_backend_clear(backend, unit->op, p->at, n);
	p->now = bmm_host_clock();
	learn(slice, n, p->now - then, unit->ns / SLICES);
	*over = p->now - p->begun + (p->now - then) > unit->ns;
	return n;
}

/* A turn, or a part of one: returns whether there is time for another. */
static bool clear_turn(const struct bmm_unit *unit, struct progress *p)
{
	struct bmm_turn turn;
	size_t most = bmm_turn_begin(&turn, unit->op, unit->whole, p->left,
				     unit->node);
	size_t done = 0, n;
	bool over = false;

	for (; done < most && !over; done += n, p->at += n, p->left -= n) {
		n = most - done;
		if (unit->bytes)
			bmm_backend_clear(turn.backend, unit->op, p->at, n);
		else
			n = clear_slice(unit, turn.backend, p, n, &over);
	}
	bmm_turn_end(&turn, done);
	return !over;
}

/**
 * bmm_unit_clear() - clear a unit
 * @unit: how long it may be; its @took is set
 * @at:   where
 * @left: bytes that are left to clear, at least 1
 *
 * Return: bytes that were cleared, 1 to @left; whole pages if @at and @left are.
 */
size_t bmm_unit_clear(struct bmm_unit *unit, char *at, size_t left)
{
	bool bounded = unit->bytes && unit->bytes < left;
	struct progress p = {
		.at = at,
		.left = bounded ? unit->bytes : left,
		.begun = bmm_host_clock(),
	};

	p.now = p.begun;
	while (p.left && clear_turn(unit, &p))
		;
	unit->took = bmm_host_clock() - p.begun;
	return p.at - at;
}

/**
 * bmm_unit_forget() - begin anew, with slices of a page
 *
 * For when another time is wanted: a slice that was right for a second must not
 * be the first of those for a microsecond.
 */
void bmm_unit_forget(void)
{
	enum bmm_op op;
	size_t i;

	for (op = 0; op < BMM_OPS; op++)
		for (i = 0; i < BMM_CHOOSE_MAX; i++)
			set(&slices[op][i], 0);
}
