// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Calls of the program, on the thread that called: progress() and ready(). */
#include <errno.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

/* Stops the rest; in a forked child there are no threads, and maybe no lock. */
static void cancel(struct workers *workers, const struct piece *piece)
{
	pthread_mutex_lock(&workers->lock);
	workers->stop = true;
	workers->report.error = -ECANCELED;
	if (piece) {
		workers->report.failed = (void *)piece->from;
		workers->report.failed_len = piece->to - piece->from;
	}
	pthread_mutex_unlock(&workers->lock);
}

/* Calls progress(); @last: even if TELL_NS has not passed. */
void report_progress(struct workers *workers, bool last)
{
	uint64_t now = bmm_host_clock();
	size_t done;
	bool stop;

	if (!workers->options.progress ||
	    (!last && now - workers->progress_ns < TELL_NS))
		return;
	workers->progress_ns = now;
	pthread_mutex_lock(&workers->lock);
	done = workers->report.done;
	pthread_mutex_unlock(&workers->lock);
	release_caller(workers);
	stop = workers->options.progress(workers->options.context, done,
					 workers->len);
	workers->forked = getpid() != workers->pid;
	if (stop && !last && !workers->forked)
		cancel(workers, NULL);
}

static bool next_piece(struct workers *workers, struct piece *piece)
{
	bool there;

	pthread_mutex_lock(&workers->lock);
	workers->fresh = false;
	there = workers->report.error != -ECANCELED &&
		take_ready(workers, piece);
	pthread_mutex_unlock(&workers->lock);
	return there;
}

/* Passes what is done to the program's ready(). */
void pass_pieces(struct workers *workers)
{
	struct piece piece;
	int refused;

	if (!workers->options.ready)
		return;
	while (!workers->forked && next_piece(workers, &piece)) {
		release_caller(workers);
		refused = workers->options.ready(workers->options.context,
						 (void *)piece.from,
						 piece.to - piece.from);
		workers->forked = getpid() != workers->pid;
		if (workers->forked)
			return;
		if (refused)
			cancel(workers, &piece); /* there is no next one */
		else
			report_progress(workers, false);
	}
}

/* Whatever is to be told; after a fork there is nothing. */
void call_program(struct workers *workers)
{
	pass_pieces(workers);
	if (!workers->forked)
		report_progress(workers, false);
}
