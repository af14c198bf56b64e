// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that share ranges. The caller is one of them: it starts the others
 * while they help (scaling.c), or all at once where each works on huge pages so
 * large that trying takes longer than it could save; and works alone if the
 * ranges are small or no thread can be created. Where pieces are passed to the
 * program (callbacks.c), the caller does only that, and the first of the others
 * starts the rest.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#define SLOW_TIMES 8U /* documented; more than caches and nodes cause */

static void changed_init(pthread_cond_t *changed)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(changed, &attr);
	pthread_condattr_destroy(&attr);
}

/*
 * Makes room for threads, and for many ranges and segments; false: there is no
 * memory. Not malloc(): the caller may be an mmap() wrapper.
 */
bool workers_expand(struct workers *workers)
{
	struct worker_memory *memory;

	if (workers->memory)
		return true;
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	memcpy(memory->segments, workers->few, sizeof(workers->few));
	memcpy(memory->pieces, workers->few_pieces, sizeof(workers->few_pieces));
	memory->extents[0] = workers->first;
	workers->segments = memory->segments;
	workers->segments_max = BMM_RANGES_MAX + SEGMENTS_MAX;
	workers->extents = memory->extents;
	workers->ready.pieces = memory->pieces;
	workers->memory = memory;
	return true;
}

/* For so many ranges; false: there is no memory. */
bool workers_init(struct workers *workers, unsigned int extents_nr,
		  const struct bmm_options *options)
{
	memset(workers, 0, sizeof(*workers));
	workers->options = *options;
	workers->pages.pagemap = -1;
	workers->huge = LEAST;
	workers->prefer = workers->node = -1;
	workers->report.threads = 1;
	workers->self.workers = workers;
	workers->self.policy = POLICY_UNKNOWN;
	workers->extents = &workers->first;
	workers->segments = workers->few;
	workers->segments_max = SEGMENTS_FEW;
	workers->ready.pieces = workers->few_pieces;
	pthread_mutex_init(&workers->lock, NULL);
	changed_init(&workers->changed);
	scaling_start(&workers->scaling, 1, 1);
	return extents_nr == 1 || workers_expand(workers);
}

void workers_free(struct workers *workers)
{
	pages_close(&workers->pages);
	if (!workers->forked) { /* else a thread of the parent may hold them */
		pthread_cond_destroy(&workers->changed);
		pthread_mutex_destroy(&workers->lock);
	}
	unmap_stacks(workers);
	if (workers->memory)
		munmap(workers->memory, sizeof(*workers->memory));
}

/* The node of a thread: they take turns. */
unsigned int node_of_worker(const struct workers *workers, unsigned int id)
{
	unsigned int node, left = id % SET_COUNT(&workers->nodes);

	for (node = 0; node < NODES_MAX; node++)
		if (SET_HAS(&workers->nodes, node) && !left--)
			break;
	return node;
}

/*
 * Binds a thread to its node; returns true if that changed its affinity. Starts
 * from what the caller was allowed: a new thread inherits where the caller is
 * bound now, which is another node's CPUs.
 */
bool bind_worker(const struct worker *worker, struct cpus *before)
{
	const struct workers *workers = worker->workers;
	struct nodes home = { 0 };
	struct cpus cpus;

	if (!workers->bound || !cpus_allowed(before))
		return false;
	cpus = workers->allowed;
	SET_ADD(&home, worker->home);
	cpus_of_nodes(&home, &cpus);
	if (!memcmp(&cpus, before, sizeof(cpus)))
		return false;
	cpus_bind(&cpus);
	return true;
}

/* In a full cgroup there is no page for a stack either: touch it first. */
__attribute__((noinline)) static void touch_stack(void)
{
	volatile char room[16 * KIB];
	size_t i;

	for (i = 0; i < sizeof(room); i += 4 * KIB)
		room[i] = 0;
}

static void start_threads(struct workers *workers);

static void run_worker(struct worker *worker)
{
	struct cpus before;

	touch_stack();
	bind_worker(worker, &before);
	do {
		if (worker->starts)
			start_threads(worker->workers);
	} while (process_slice(worker));
}

static void *thread(void *arg)
{
	struct worker *worker = arg;
	struct workers *workers = worker->workers;
	bool room = has_room(worker);

	if (room)
		run_worker(worker);
	pthread_mutex_lock(&workers->lock);
	if (!room) { /* nor has any other thread: the caller does all */
		workers->cramped = true;
		workers->scaling.most = 1;
		if (workers->passes) { /* the caller reads it locked only */
			workers->passes = false;
			workers->resumes = true;
		}
	}
	workers->alive--;
	pthread_cond_signal(&workers->changed);
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

static bool start_worker(struct workers *workers, unsigned int id)
{
	struct worker *worker = &workers->memory->threads[id];

	*worker = (struct worker){ .workers = workers,
				   .id = id,
				   .policy = POLICY_UNKNOWN,
				   .starts = id == 1 && workers->options.ready };
	if (workers->bound)
		worker->home = node_of_worker(workers, id);
	return start_thread(workers, worker, thread);
}

/* Joins threads that ended because they did not help. */
static void join_above(struct workers *workers, unsigned int id)
{
	while (workers->created > id) {
		pthread_join(workers->memory->threads[workers->created].thread,
			     NULL);
		workers->created--;
	}
}

static void next_step(struct workers *workers)
{
	size_t done = workers->report.done;

	scaling_next(&workers->scaling, done, workers->len - done);
}

/* Finds out how many may work, and maps their stacks. */
static void limit_scaling(struct workers *workers)
{
	struct scaling *scaling = &workers->scaling;
	unsigned int most = 1, others = !workers->passes;

	workers->limited = true;
	if (!in_handler() && workers_expand(workers)) {
		most = limit_threads(workers);
		most = map_stacks(workers, most - others) + others;
	}
	workers->passes &= workers->stacks_nr > 0;
	if (!most)
		most = 1;
	if (workers->wide)
		scaling_start(scaling, most, most);
	if (most < scaling->most) {
		scaling->most = most;
		next_step(workers);
	}
}

/* Decides how many should work, without the caller. */
static unsigned int decide_threads(struct workers *workers)
{
	unsigned int threads;

	pthread_mutex_lock(&workers->lock);
	next_step(workers);
	if (!workers->limited &&
	    (workers->scaling.now > 1 || workers->wide || workers->passes))
		limit_scaling(workers);
	threads = workers->scaling.now - !workers->passes;
	pthread_mutex_unlock(&workers->lock);
	return threads;
}

/* Makes do with the threads that are running. */
static void give_up_starting(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	workers->alive--;
	workers->created--;
	if (!workers->created)
		workers->passes = false;
	workers->scaling.most = workers->created + !workers->passes;
	next_step(workers);
	pthread_mutex_unlock(&workers->lock);
}

/*
 * Starts as many as should work; if that fails, makes do with those running.
 * By the caller, or, where that passes pieces, by the first thread.
 */
static void start_threads(struct workers *workers)
{
	unsigned int threads = decide_threads(workers);
	bool hand_over = workers->passes && !workers->created;

	join_above(workers, threads);
	while (workers->created < threads) {
		pthread_mutex_lock(&workers->lock);
		workers->alive++;
		workers->created++;
		pthread_mutex_unlock(&workers->lock);
		if (!start_worker(workers, workers->created)) {
			give_up_starting(workers);
			break;
		}
		if (hand_over)
			return; /* the first thread goes on */
	}
	threads = workers->created + !workers->passes;
	if (workers->report.threads < threads)
		workers->report.threads = threads;
}

/* Waits for a while; returns whether there may be something left to do. */
static bool wait_for_others(struct workers *workers)
{
	struct timespec until;
	bool busy;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)TELL_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&workers->lock);
	if (workers->alive && !workers->fresh)
		pthread_cond_timedwait(&workers->changed, &workers->lock,
				       &until);
	busy = workers->alive || workers->resumes;
	workers->resumes = false;
	pthread_mutex_unlock(&workers->lock);
	return busy;
}

static void report_slowest(struct workers *workers)
{
	struct bmm_report *report = &workers->report;
	size_t others = workers->timed - workers->slow_len;
	double usual;

	if (!others || workers->slow_ns < SLOW_NS || workers->len < SMALL)
		return;
	usual = (double)(workers->ns - workers->slow_ns) / (double)others *
		(double)workers->slow_len;
	if ((double)workers->slow_ns < SLOW_TIMES * usual)
		return;
	report->slow = (void *)workers->slow;
	report->slow_len = workers->slow_len;
	report->slow_ns = workers->slow_ns;
	report->usual_ns = (uint64_t)usual;
}

static void work_all(struct workers *workers)
{
	if (workers->wide || workers->passes || workers->staging)
		start_threads(workers);
	do {
		while (!workers->forked && process_slice(&workers->self)) {
			start_threads(workers);
			call_program(workers);
		}
		if (!workers->forked)
			call_program(workers);
	} while (!workers->forked && wait_for_others(workers));
	if (!workers->forked) {
		join_above(workers, 0);
		if (workers->cramped)
			workers->report.threads = 1;
		pass_pieces(workers);
	}
}

/**
 * workers_run() - process the whole range
 * @workers: from workers_init(), with work and segments set
 *
 * Return: 0, or a negative error number. Fills the report except for causes.
 */
int workers_run(struct workers *workers)
{
	struct bmm_report *report = &workers->report;
	uint64_t start = bmm_host_clock();

	workers->progress_ns = start;
	if (workers->options.progress || workers->options.ready)
		workers->pid = getpid();
	workers->ready.next = workers->extents[0].start;
	work_all(workers);
	report->ns = bmm_host_clock() - start;
	if (workers->forked) { /* what was in progress is unknown */
		report->reached = (void *)workers->extents[0].start;
		report->error = -ECHILD;
		return report->error;
	}
	report->reached = (void *)reached_address(workers);
	if (workers->failure.error)
		report->error = workers->failure.error;
	report_slowest(workers);
	report_progress(workers, true);
	return report->error;
}
