// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * After the decision a rival is put on trial: when its turn comes (soon after a
 * decision, ever more rarely then, since a decision may have been bad luck or
 * may have grown old), or at once when the winner has become slower than the
 * rival is remembered to be. A trial ends with the first sample that is no
 * better; only several better ones dethrone the winner.
 */
#include "choose_private.h"

#define TRIAL_SAMPLES 5U
#define SLOW	      4U /* times slower than the best: leave out a turn */
#define SHUN_MAX      4U /* turns */
/* A trial in the middle of an operation makes its long chunks short ones. */
#define GAP_LONG    (8 * GAP_MAX)
#define BRIEF_TURNS 7U /* see choose.c on long chunks */

/* Ask the next rival after so much work. */
void bmm_trial_in(struct bmm_chooser *c, uint32_t gap)
{
	set(&c->gap, gap);
	set(&c->due, get(&c->clock) + gap);
}

/* The more a trial costs, the rarer it is: one that stalls is left alone. */
static void shun_if_slow(struct bmm_chooser *c, unsigned int k,
			 unsigned int winner)
{
	uint32_t turns = get(&c->candidate[k].cost) / cost(c, winner) / SLOW;

	set(&c->candidate[k].shun,
	    (uint8_t)(turns < SHUN_MAX ? turns : SHUN_MAX));
}

/* Rivals that are due for a long chunk come before all: at the second call. */
static void long_ones_first(struct bmm_chooser *c)
{
	if (get(&c->long_due))
		set(&c->due, get(&c->clock) + 2);
}

/* The winner is @k from now on. */
void bmm_trial_crown(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		     uint32_t gap)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		shun_if_slow(c, i, k);
	set(&c->winner, (uint8_t)(k + 1));
	set(&c->long_won, 0);
	set(&c->trial, 0);
	set(&c->armed, 0);
	bmm_trial_in(c, gap < GAP_MIN ? GAP_MIN : gap);
	long_ones_first(c);
}

/* What was measured in other times does not count in a trial. */
static void try(struct bmm_chooser *c, unsigned int k, bool lengthy)
{
	set(&c->lengthy, lengthy);
	bmm_samples_forget(&c->candidate[k]);
	set(&c->trial, (uint8_t)(k + 1));
	set(&c->armed, (uint8_t)(k + 1));
}

/*
 * A long chunk is dear: for one that may well win, and rarely. But against one
 * that won by long chunks, always: a short one would make the rest of the
 * operation short for the winner.
 */
static bool may_be_long(struct bmm_chooser *c, unsigned int k,
			unsigned int winner)
{
	unsigned int brief = get(&c->candidate[k].brief);

	if (cost(c, k) > 2ULL * cost(c, winner))
		return false;
	if (get(&c->long_won))
		return true;
	if (get(&c->gap) < GAP_MAX)
		return false;
	set(&c->candidate[k].brief, (uint8_t)(brief ? brief - 1 : BRIEF_TURNS));
	return !brief;
}

/* Who is due for the first long chunk, and comes close; @nr if nobody. */
static unsigned int long_rival(struct bmm_chooser *c, unsigned int nr,
			       unsigned int winner)
{
	unsigned int due = get(&c->long_due), k;

	for (k = 0; k < nr; k++) {
		if (!(due >> k & 1))
			continue;
		due &= ~(1U << k);
		if (k != winner && 8ULL * cost(c, k) <= 11ULL * cost(c, winner))
			break;
	}
	set(&c->long_due, (uint8_t)(k < nr ? due : 0));
	return k;
}

static void try_long(struct bmm_chooser *c, unsigned int nr, unsigned int winner)
{
	unsigned int k = long_rival(c, nr, winner);

	if (k < nr) {
		try(c, k, true);
		/* Room for all of its chunks: they count by the MiB. */
		set(&c->due, get(&c->clock) + GAP_MAX);
	} else {
		bmm_trial_in(c, get(&c->gap));
	}
}

static void try_next(struct bmm_chooser *c, unsigned int nr, unsigned int winner)
{
	unsigned int k = get(&c->cursor), n, shun;
	uint32_t gap = get(&c->gap);

	for (n = 0; n < nr; n++) {
		if (!k && gap < GAP_MAX)
			gap *= 8;
		k = k && k < nr ? k - 1 : nr - 1;
		shun = get(&c->candidate[k].shun);
		if (k == winner)
			continue;
		if (!shun) {
			try(c, k, may_be_long(c, k, winner));
			break;
		}
		set(&c->candidate[k].shun, (uint8_t)(shun - 1));
	}
	set(&c->cursor, (uint8_t)k);
	bmm_trial_in(c, gap);
}

/* It is time: the rival whose turn it is; rarer after every full circle. */
void bmm_trial_begin(struct bmm_chooser *c, unsigned int nr, unsigned int winner)
{
	if (get(&c->long_due))
		try_long(c, nr, winner);
	else
		try_next(c, nr, winner);
}

static void crown_tried(struct bmm_chooser *c, unsigned int nr, unsigned int k)
{
	bool lengthy = get(&c->lengthy);

	bmm_trial_crown(c, nr, k, lengthy ? GAP_LONG : get(&c->gap) / 8);
	set(&c->long_won, lengthy);
}

/*
 * A sample of the one on trial has come. It must be better than the winner
 * every time, so that chance alone does not switch, and by a margin in all.
 */
void bmm_trial_feed(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		    unsigned int winner)
{
	uint64_t rival = cost(c, k), best = cost(c, winner);

	if (bmm_samples_newest(&c->candidate[k], 0) >= best) {
		set(&c->trial, 0);
		shun_if_slow(c, k, winner);
		long_ones_first(c);
	} else if (get(&c->candidate[k].samples) < TRIAL_SAMPLES) {
		set(&c->armed, (uint8_t)(k + 1));
	} else if (rival + rival / 16 < best) {
		crown_tried(c, nr, k);
	} else {
		set(&c->trial, 0);
	}
}

/*
 * The winner's times have changed; its median was @before. Others may have
 * changed as well: go around soon. But not if it won by short chunks and now
 * shows what it does in long ones; and not if it has won by those, which a
 * round of trials would cut.
 */
void bmm_trial_changed(struct bmm_chooser *c, unsigned int winner,
		       uint32_t before)
{
	if (get(&c->long_mask) >> winner & 1 && cost(c, winner) < before)
		set(&c->long_won, 1);
	bmm_trial_in(c, get(&c->long_won) ? GAP_LONG : GAP_MIN);
}

/*
 * A sample of the winner has come: was a rival better than it is now? Asked of
 * a full window, or when bmm_samples_cut() has just cut it. A rival that loses
 * its trial is then remembered as it is now, so this cannot go on for ever.
 */
void bmm_trial_look_back(struct bmm_chooser *c, unsigned int nr,
			 unsigned int winner)
{
	unsigned int samples = get(&c->candidate[winner].samples);
	uint64_t remembered;
	unsigned int rival;

	if (samples < BMM_CHOOSE_WINDOW && samples != 2)
		return;
	if (get(&c->trial))
		return;
	rival = bmm_race_leader(c, nr, winner);
	remembered = cost(c, rival);
	if (rival != winner && remembered + remembered / 8 < cost(c, winner))
		try(c, rival, get(&c->long_won));
}
