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

static void set_threads(struct scaling *scaling, unsigned int threads)
{
	scaling->now = threads;
	scaling->step++;
	scaling->reported = 0;
	scaling->bytes = scaling->ns = 0;
}

/* @now: threads to begin with; where those are the most, there is no search. */
void scaling_start(struct scaling *scaling, unsigned int now, unsigned int most)
{
	memset(scaling, 0, sizeof(*scaling));
	scaling->most = most;
	scaling->retry_at = now == most ? SIZE_MAX : 0;
	set_threads(scaling, now);
}

/* Accounts a slice that began in @step; @last: of the thread's last one. */
void scaling_feed(struct scaling *scaling, unsigned int *last,
		  unsigned int step, size_t bytes, uint64_t ns)
{
	if (step != scaling->step)
		return;
	scaling->reported += *last != step;
	*last = step;
	scaling->bytes += bytes;
	scaling->ns += ns;
}

static void undo(struct scaling *scaling, size_t done)
{
	scaling->retry_at = 4 * done;
	scaling->rate = 0;
	scaling->remeasured = false;
	set_threads(scaling, scaling->best);
}

static void keep(struct scaling *scaling, uint64_t rate, size_t done,
		 size_t left)
{
	unsigned int twice = 2 * scaling->now;

	scaling->best = scaling->now;
	scaling->rate = rate;
	scaling->remeasured = false;
	if (scaling->now == scaling->most)
		scaling->retry_at = SIZE_MAX;
	else if (left < rate)
		undo(scaling, done);
	else
		set_threads(scaling,
			    twice < scaling->most ? twice : scaling->most);
}

/**
 * scaling_next() - decide on the next step
 * @scaling: updated; @now in it is how many threads should work from now on
 * @done:    bytes done so far
 * @left:    bytes not done yet
 */
void scaling_next(struct scaling *scaling, size_t done, size_t left)
{
	uint64_t rate, need;

	if (done < scaling->retry_at || scaling->now > scaling->most) {
		if (scaling->now > scaling->most) /* no more could be started */
			set_threads(scaling, scaling->most);
		return;
	}
	need = scaling->now * WINDOW * (scaling->remeasured ? LONGER : 1);
	if (scaling->reported < scaling->now || scaling->bytes < need)
		return;
	rate = scaling->now * scaling->bytes * 1000 / (scaling->ns / 1000 + 1);
	if (rate < scaling->rate)
		undo(scaling, done);
	else if (rate >= scaling->rate + scaling->rate / CLEAR)
		keep(scaling, rate, done, left);
	else if (!scaling->remeasured)
		scaling->remeasured = true;
	else if (rate > scaling->rate + scaling->rate / GAIN)
		keep(scaling, rate, done, left);
	else
		undo(scaling, done);
}
