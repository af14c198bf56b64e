// SPDX-License-Identifier: GPL-2.0-only
/*
 * A unit is what its backend has recently cleared, on this CPU, in an eighth of
 * the target time: a chance to reschedule costs a few instructions, reading the
 * clock far more. So a forecast may be wrong by a factor of twelve and the unit
 * still ends within one and a half times the target; and the clock is read for
 * only one unit in 61. (At 10 GB/s and 1 ms, a unit is 1.25 MB.)
 *
 * Forecasts are per backend: while a pick measures, backends alternate unit by
 * unit, and one may be a hundred times slower than the last under emulation. An
 * unknown backend starts with a page, and no unit is more than twice as long as
 * the last one measured; while units grow, or a pick measures, each is timed.
 */
#include "../core/drain.h"
#include "clear_unit.h"

#define SMALLEST 4096UL /* bytes of a unit: a page */
#define SHARE	 8	/* one part in so many of the target time */
#define EVERY                                                 \
	61 /* units per timed one; a prime, so that it is not \
	    * always the same part of a folio */

/* A migrated task may write the old CPU's: harmless, only a forecast. */
static size_t unit_fit(const size_t *fit)
{
	size_t bytes = bmm_get(fit);

	return bytes ? bytes : SMALLEST;
}

/*
 * @n bytes took @ns, the target is @wanted. Slower counts at once; faster only
 * if a full unit was done, since a short remainder proves little.
 *
 * Return: true if an even larger unit may be right.
 */
static bool unit_learn(size_t *fit, size_t n, uint64_t ns, uint64_t wanted)
{
	size_t now = unit_fit(fit), next = n * wanted / (ns ? ns : 1);
	bool grows = next > 2 * now && n >= now;

	if (next > now && n < now)
		return false;
	if (next > 2 * now)
		next = 2 * now;
	next -= next % SMALLEST;
	bmm_set(fit, next ? next : SMALLEST);
	return grows;
}

/* The backend for the next unit: the one that serves, else a sample's. */
static unsigned int unit_next(struct bmm_zero *zero, struct bmm_turn *turn)
{
	int serves = bmm_get(&zero->serves);

	turn->pick = NULL;
	if (serves >= 0)
		return (unsigned int)serves;
	bmm_turn_begin(turn, zero->pick, zero->op);
	return turn->pick ? bmm_pick_of(turn->number) :
			    bmm_pick_best(zero->pick);
}

static void unit_zero(const struct bmm_zero *zero, unsigned int by, char *at,
		      size_t n)
{
	struct bmm_job job = { .op = zero->op, .dst = at, .len = n };

	bmm_job_do(&job, zero->by[by]);
}

/* How long a unit may be with a backend. */
static size_t unit_bytes(const struct bmm_unit_want *want, const size_t *fit,
			 size_t left)
{
	size_t n = want->bytes < left ? want->bytes : left;

	return want->by_ns && n > unit_fit(fit) ? unit_fit(fit) : n;
}

/* Clears a unit that is timed, or is a sample of a pick. */
static size_t unit_timed(struct bmm_zero *zero, struct bmm_units *mine,
			 const struct bmm_unit_want *want, char *at,
			 size_t left, uint64_t *ns)
{
	struct bmm_turn turn;
	unsigned int by = unit_next(zero, &turn);
	size_t *fit = &mine->fit[zero->kind][by];
	size_t n = unit_bytes(want, fit, left);
	uint64_t begun = bmm_host_clock();
	bool grows = false;

	unit_zero(zero, by, at, n);
	if (bmm_op_streams(zero->op))
		bmm_drain_stores();
	if (turn.pick)
		bmm_turn_end(&turn, n);
	*ns = bmm_host_clock() - begun;
	if (want->by_ns)
		grows = unit_learn(fit, n, *ns, want->ns / SHARE);
	bmm_set(&mine->until, grows ? 0 : EVERY - 1);
	return n;
}

/**
 * bmm_unit_clear() - clear a unit
 * @zero: extents of this kind
 * @mine: this CPU's units
 * @want: how units should be
 * @at:   where
 * @left: bytes left to clear, at least 1
 * @ns:   result: how long it took; 0 if not timed
 *
 * Once @zero is settled, only @at and @mine are written.
 *
 * Return: bytes cleared and drained, 1 to @left; whole pages if @at, @left and
 * @want are.
 */
size_t bmm_unit_clear(struct bmm_zero *zero, struct bmm_units *mine,
		      const struct bmm_unit_want *want, char *at, size_t left,
		      uint64_t *ns)
{
	unsigned int until = bmm_get(&mine->until);
	int by = bmm_get(&zero->serves);
	size_t n;

	if (by < 0 || !bmm_get(&zero->settled) || !until || want->timed)
		return unit_timed(zero, mine, want, at, left, ns);
	*ns = 0;
	bmm_set(&mine->until, until - 1);
	n = unit_bytes(want, &mine->fit[zero->kind][by], left);
	bmm_zero_settled(zero, at, n);
	if (bmm_op_streams(zero->op))
		bmm_drain_stores();
	return n;
}
