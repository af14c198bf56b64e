// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How many threads help. They are doubled as long as the total rate grows by
 * more than 5 %. The rate is bytes by time in slices, times the threads, over
 * slices that began under the current number: none that spans a step counts.
 * Every thread must have finished one, because threads that wait for others
 * finish last. Unfinished slices are left out, which flatters short windows: a
 * step that gains little is measured four times as long, then kept or undone;
 * one that loses is undone at once. It is tried again when four times as much
 * is done: the machine may be quieter then. For what would be done in a
 * millisecond anyway no thread is started: that alone takes a part of one.
 */
#include <string.h>

#include "populate.h"

#define WINDOW (8 * MIB) /* per thread: a millisecond if fast */
#define GAIN   20U	 /* a twentieth: the 5 % */
#define CLEAR  4U	 /* a quarter: more than a short window flatters */
#define LONGER 4U

static void step(struct grow *grow, unsigned int threads)
{
	grow->now = threads;
	grow->step++;
	grow->heard = 0;
	grow->bytes = grow->ns = 0;
}

void grow_start(struct grow *grow, unsigned int most)
{
	memset(grow, 0, sizeof(*grow));
	grow->most = most;
	step(grow, 1);
}

/* Accounts a slice that began in @step; @last: of the thread's last one. */
void grow_feed(struct grow *grow, unsigned int *last, unsigned int step,
	       size_t bytes, uint64_t ns)
{
	if (step != grow->step)
		return;
	grow->heard += *last != step;
	*last = step;
	grow->bytes += bytes;
	grow->ns += ns;
}

static void undo(struct grow *grow, size_t done)
{
	grow->again = 4 * done;
	grow->rate = 0;
	grow->doubted = false;
	step(grow, grow->best);
}

static void keep(struct grow *grow, uint64_t rate, size_t done, size_t left)
{
	unsigned int twice = 2 * grow->now;

	grow->best = grow->now;
	grow->rate = rate;
	grow->doubted = false;
	if (grow->now == grow->most)
		grow->again = SIZE_MAX;
	else if (left < rate)
		undo(grow, done);
	else
		step(grow, twice < grow->most ? twice : grow->most);
}

/**
 * grow_next() - decide on the next step
 * @grow: updated; @now in it is how many threads should work from now on
 * @done: bytes done so far
 * @left: bytes not done yet
 */
void grow_next(struct grow *grow, size_t done, size_t left)
{
	uint64_t rate, need;

	if (done < grow->again || grow->now > grow->most) {
		if (grow->now > grow->most) /* no more could be started */
			step(grow, grow->most);
		return;
	}
	need = grow->now * WINDOW * (grow->doubted ? LONGER : 1);
	if (grow->heard < grow->now || grow->bytes < need)
		return;
	rate = grow->now * grow->bytes * 1000 / (grow->ns / 1000 + 1);
	if (rate < grow->rate)
		undo(grow, done);
	else if (rate >= grow->rate + grow->rate / CLEAR)
		keep(grow, rate, done, left);
	else if (!grow->doubted)
		grow->doubted = true;
	else if (rate > grow->rate + grow->rate / GAIN)
		keep(grow, rate, done, left);
	else
		undo(grow, done);
}
