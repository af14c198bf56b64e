// SPDX-License-Identifier: GPL-2.0-only
/*
 * A unit is cleared in slices, and the clock is read after each: when another
 * slice like the last one would not fit any more, the unit is over. A slice is
 * what its backend has lately cleared in an eighth of the wanted time. So a
 * forecast may be wrong, by a factor of four even, and the unit still ends
 * within one and a half of the wanted time: at worst an eighth becomes a half.
 *
 * Forecasts belong to backends: while a pick measures they take turns, slice
 * by slice, and one may be a hundred times slower than the last under
 * emulation. A backend of which nothing is known begins with a page, and no
 * slice is more than twice as long as what was measured last.
 */
#include "../core/drain.h"
#include "clear_unit.h"

#define SMALLEST 4096UL /* bytes of a slice: a page */
#define SLICES	 8	/* that fit into a unit */

/* CPUs that race lose each other's samples: whichever is kept was measured. */
static size_t unit_slice(const struct bmm_zero_by *by)
{
	size_t bytes = bmm_get(&by->slice);

	return bytes ? bytes : SMALLEST;
}

/*
 * @n bytes took @ns, @wanted would be right. Slower counts at once; faster only
 * if all that was allowed was done, since a short rest proves little.
 */
static void unit_learn(struct bmm_zero_by *by, size_t n, uint64_t ns,
		       uint64_t wanted)
{
	size_t now = unit_slice(by), fit = n * wanted / (ns ? ns : 1);

	if (fit > now && n < now)
		return;
	if (fit > 2 * now)
		fit = 2 * now;
	fit -= fit % SMALLEST;
	bmm_set(&by->slice, fit ? fit : SMALLEST);
}

/* Who clears the next slice: a sample, if there is nobody to serve yet. */
static struct bmm_zero_by *unit_next(struct bmm_zero *zero,
				     struct bmm_turn *turn)
{
	struct bmm_zero_by *by = bmm_get(&zero->serves);

	turn->pick = NULL;
	if (by)
		return by;
	bmm_turn_begin(turn, zero->pick, zero->op);
	return &zero->by[turn->pick ? bmm_pick_of(turn->number) :
				      bmm_pick_best(zero->pick)];
}

static void unit_slice_clear(const struct bmm_zero *zero,
			     const struct bmm_zero_by *by, char *at, size_t n)
{
	struct bmm_job job = { .op = zero->op, .dst = at, .len = n };

	bmm_job_do(&job, by->backend);
	if (bmm_op_streams(zero->op))
		bmm_drain_stores();
}

/**
 * bmm_unit_clear() - clear a unit
 * @zero: extents of this kind
 * @at:   where
 * @left: bytes that are left to clear, at least 1
 * @ns:   how long it may take; 0: a page
 *
 * Return: bytes that were cleared, drained, 1 to @left; whole pages if @at and
 * @left are.
 */
size_t bmm_unit_clear(struct bmm_zero *zero, char *at, size_t left, uint64_t ns)
{
	uint64_t begun = bmm_host_clock(), then, now = begun;
	struct bmm_zero_by *by;
	struct bmm_turn turn;
	size_t done = 0, n;

	do {
		then = now;
		by = unit_next(zero, &turn);
		n = unit_slice(by);
		if (n > left - done)
			n = left - done;
		unit_slice_clear(zero, by, at + done, n);
		bmm_turn_end(&turn, n);
		now = bmm_host_clock();
		unit_learn(by, n, now - then, ns / SLICES);
		done += n;
	} while (done < left && now - begun + (now - then) <= ns);
	return done;
}

/**
 * bmm_unit_forget() - begin again with slices of a page
 * @zero: whose slices
 *
 * For when another time is wanted, or another backend: a slice that was right
 * for a second, or an hour ago, must not be the first.
 */
void bmm_unit_forget(struct bmm_zero *zero)
{
	size_t i;

	for (i = 0; i <= BMM_CANDIDATES; i++)
		bmm_set(&zero->by[i].slice, 0);
}
