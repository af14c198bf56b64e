// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calibration is a race in rounds. Each round hands one chunk to each candidate
 * that is still in the race; who is clearly slower drops out. When the leader
 * has a full window, it wins.
 */
#include "choose_private.h"

#define PATIENCE 256U /* chunks of calibration, if samples never come */

/*
 * In eighths of the best: who stays in the race after so many samples. The
 * first one alone may be bad luck (another task, a fault): only who is eight
 * times slower is out at once.
 */
static const uint8_t race_limit[BMM_CHOOSE_WINDOW] = { 0,  64, 14, 13, 12,
						       12, 11, 11, 10 };
#define DOUBTFUL 16 /* so slow, it gets another short chunk */

/*
 * The candidate of least cost but for one. Callers list from the slowest to
 * the fastest guess: the last one stands if nothing is known.
 */
unsigned int bmm_race_leader(const struct bmm_chooser *c, unsigned int nr,
			     unsigned int except)
{
	unsigned int best = nr - 1, k;
	uint32_t least, known;

	if (best == except && best)
		best--;
	least = cost(c, best);
	for (k = best; k--;) {
		known = cost(c, k);
		if (k != except && known < least) {
			best = k;
			least = known;
		}
	}
	return best;
}

static bool in_race(const struct bmm_chooser *c, unsigned int k, uint32_t best)
{
	unsigned int n = get(&c->candidate[k].samples);

	if (!n || n >= BMM_CHOOSE_WINDOW)
		return !n;
	return 8ULL * cost(c, k) < (uint64_t)race_limit[n] * best;
}

/* Whether so little is known of @k that it gets a short chunk. */
bool bmm_race_doubts(const struct bmm_chooser *c, unsigned int k)
{
	unsigned int n = get(&c->candidate[k].samples);
	uint32_t best;

	if (n != 1 || get(&c->winner))
		return !n;
	best = cost(c, bmm_race_leader(c, get(&c->nr), BMM_CHOOSE_MAX));
	return 8ULL * cost(c, k) >= (uint64_t)DOUBTFUL * best;
}

static bool race_is_over(const struct bmm_chooser *c, unsigned int nr)
{
	uint32_t best = cost(c, bmm_race_leader(c, nr, nr));
	unsigned int k;

	for (k = 0; k < nr; k++)
		if (in_race(c, k, best))
			return false;
	return true;
}

/* Who runs next, from the fastest guess down; @nr if all have had their go. */
static unsigned int runner(struct bmm_chooser *c, unsigned int nr)
{
	uint32_t best = cost(c, bmm_race_leader(c, nr, nr));
	unsigned int k = get(&c->cursor), n, asked;

	for (n = 0; n < nr; n++) {
		k = k && k < nr ? k - 1 : nr - 1;
		asked = get(&c->candidate[k].asked);
		/* Many CPUs may ask before the first of them has an answer. */
		if (asked >= BMM_CHOOSE_WINDOW || !in_race(c, k, best))
			continue;
		set(&c->candidate[k].asked, (uint8_t)(asked + 1));
		set(&c->cursor, (uint8_t)k);
		return k;
	}
	return nr;
}

/* Who takes the next chunk. */
unsigned int bmm_race_next(struct bmm_chooser *c, unsigned int nr)
{
	unsigned int k = runner(c, nr);

	if (k < nr)
		return k;
	k = bmm_race_leader(c, nr, nr);
	/* All is handed out, but some callers brought no sample back. */
	if (get(&c->clock) > PATIENCE)
		bmm_trial_crown(c, nr, k, GAP_MIN);
	return k;
}

/* A sample has come: it may have been the last that is needed. */
void bmm_race_feed(struct bmm_chooser *c, unsigned int nr)
{
	if (race_is_over(c, nr))
		bmm_trial_crown(c, nr, bmm_race_leader(c, nr, nr), GAP_MIN);
}
