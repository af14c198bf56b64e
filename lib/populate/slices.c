// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A slice done by a thread: from where its pages come, and what becomes of it. */
#include <string.h>

#include "bmm_host.h"
#include "populate.h"

static void record_done(struct workers *workers, uintptr_t from, uintptr_t to)
{
	workers->report.done += to - from;
	if (!workers->options.ready || from == to)
		return;
	add_ready(workers, from, to);
	workers->fresh = true;
	pthread_cond_signal(&workers->changed);
}

static void record_failure(struct workers *workers, const struct slice *slice,
			   const struct page_result *result)
{
	workers->stop = true;
	record_done(workers, slice->from, result->failed);
	if (!workers->failure.error || result->failed < workers->failure.failed)
		workers->failure = *result;
}

static void record_time(struct worker *worker, const struct slice *slice,
			unsigned int step, uint64_t ns, bool preempted)
{
	size_t len = slice->to - slice->from;
	struct workers *workers = worker->workers;

	workers->timed += len;
	workers->ns += ns;
	scaling_feed(&workers->scaling, &worker->last, step, len, ns);
	/* the slowest by rate, compared without a division; a disk is another thing */
	if (slice->cold || workers->staging)
		return;
	if (!workers->slow_len ||
	    (double)ns * (double)workers->slow_len >
		    (double)workers->slow_ns * (double)len) {
		workers->slow = slice->from;
		workers->slow_len = len;
		workers->slow_ns = ns;
		workers->slow_preempted = preempted;
	}
}

/*
 * A thread takes its pages from where the slice is to have them. Returns 0, or
 * a negative error number.
 */
static int choose_policy(struct worker *worker, const struct segment *segment)
{
	const struct workers *workers = worker->workers;
	int error = 0;

	if ((!workers->binds && workers->prefer < 0) ||
	    worker->policy == segment->bind)
		return 0;
	if (segment->bind >= 0)
		error = policy_set(MODE_BIND, (unsigned int)segment->bind);
	else if (workers->prefer >= 0)
		policy_set(MODE_PREFERRED, (unsigned int)workers->prefer);
	else
		policy_restore(&workers->policy);
	worker->policy = error ? POLICY_UNKNOWN : segment->bind;
	return error;
}

/* Where the caller runs, and takes its pages from, while it works. */
static void bind_caller(struct workers *workers)
{
	if (!workers->works)
		workers->moved = bind_worker(&workers->self, &workers->before);
	workers->works = true;
}

/*
 * Its own affinity and policy again: a thread that the program starts in a
 * callback inherits them for good, and what the callback allocates is bound.
 */
void release_caller(struct workers *workers)
{
	if (!workers->works)
		return;
	if (workers->moved)
		cpus_bind(&workers->before);
	if (workers->changes)
		policy_restore(&workers->policy);
	workers->self.policy = POLICY_UNKNOWN;
	workers->works = workers->moved = false;
}

/* Does one slice; returns false if none is left to take. */
bool process_slice(struct worker *worker)
{
	struct workers *workers = worker->workers;
	struct page_result result = { 0 };
	struct slice slice;
	struct thread_usage usage;
	unsigned int step;
	uint64_t start;
	bool taken, preempted;

	pthread_mutex_lock(&workers->lock);
	taken = take_slice(workers, worker, &slice);
	step = workers->scaling.step;
	pthread_mutex_unlock(&workers->lock);
	if (!taken)
		return false;
	if (worker == &workers->self)
		bind_caller(workers);
	usage_read(&usage);
	start = bmm_host_clock();
	result.error = choose_policy(worker, slice.segment);
	if (result.error)
		result = (struct page_result){ .failed = slice.from,
					       .len = slice.segment->map.page,
					       .error = result.error };
	else
		workers->work(worker, &slice, &result);
	start = bmm_host_clock() - start;
	preempted = start >= SLOW_NS && was_preempted(&usage, start);
	if (workers->watches && !result.error) /* no part of the slice's time */
		watch_huge_pages(workers, &slice, start, &result);
	pthread_mutex_lock(&workers->lock);
	if (slice.cold)
		workers->reading = false;
	if (result.error)
		record_failure(workers, &slice, &result);
	else
		record_done(workers, slice.from, slice.to);
	workers->report.huge += result.huge;
	workers->report.small += result.small;
	if (!result.error && !result.resident)
		record_time(worker, &slice, step, start, preempted);
	pthread_mutex_unlock(&workers->lock);
	return true;
}
