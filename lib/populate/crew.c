// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that share a range. The caller is one of them: it starts the others
 * while they help (grow.c), reports progress to the program, and works alone if
 * the range is small or no thread can be created.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#define TELL_NS	   10000000ULL /* between calls of the program's progress() */
#define SLOW_TIMES 8U /* documented; more than caches and nodes cause */
#define SLOW_NS	   10000000ULL /* and long enough to be noticed */

static void changed_init(pthread_cond_t *changed)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(changed, &attr);
	pthread_condattr_destroy(&attr);
}

void crew_init(struct crew *crew, uintptr_t start, uintptr_t end,
	       const struct bmm_options *options)
{
	memset(crew, 0, sizeof(*crew));
	crew->start = start;
	crew->end = end;
	crew->options = *options;
	crew->pages.pagemap = -1;
	crew->huge = LEAST;
	crew->report.threads = 1;
	crew->self.crew = crew;
	crew->segments = crew->few;
	crew->segments_most = SEGMENTS_FEW;
	crew->few[0] = (struct segment){ .next = start, .end = end };
	crew->few[0].map.page = (size_t)sysconf(_SC_PAGESIZE);
	crew->segments_nr = 1;
	pthread_mutex_init(&crew->lock, NULL);
	changed_init(&crew->changed);
	grow_start(&crew->grow, 1);
}

/*
 * Makes room for threads and for many segments; false: there is no memory. Not
 * malloc(): the caller may be an mmap() wrapper.
 */
bool crew_expand(struct crew *crew)
{
	struct room *room;

	if (crew->room)
		return true;
	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return false;
	memcpy(room->segments, crew->few, sizeof(crew->few));
	crew->segments = room->segments;
	crew->segments_most = SEGMENTS_MAX;
	crew->room = room;
	return true;
}

void crew_free(struct crew *crew)
{
	pages_close(&crew->pages);
	if (!crew->forked) { /* else a thread of the parent may hold them */
		pthread_cond_destroy(&crew->changed);
		pthread_mutex_destroy(&crew->lock);
	}
	if (crew->room)
		munmap(crew->room, sizeof(*crew->room));
}

static void fail(struct crew *crew, const struct slice *slice,
		 const struct outcome *outcome)
{
	crew->stop = true;
	crew->report.done += outcome->failed - slice->from;
	if (!crew->failure.error || outcome->failed < crew->failure.failed)
		crew->failure = *outcome;
}

static void account(struct worker *worker, const struct slice *slice,
		    unsigned int step, uint64_t ns, bool preempted)
{
	size_t len = slice->to - slice->from;
	struct crew *crew = worker->crew;

	crew->timed += len;
	crew->ns += ns;
	grow_feed(&crew->grow, &worker->last, step, len, ns);
	/* the slowest by rate, compared without a division; a disk is another thing */
	if (slice->cold)
		return;
	if (!crew->slow_len || (double)ns * (double)crew->slow_len >
				       (double)crew->slow_ns * (double)len) {
		crew->slow = slice->from;
		crew->slow_len = len;
		crew->slow_ns = ns;
		crew->slow_preempted = preempted;
	}
}

/* Does one slice; returns false if none is left to take. */
static bool work_once(struct worker *worker)
{
	struct crew *crew = worker->crew;
	struct outcome outcome = { 0 };
	struct slice slice;
	struct turn turn;
	unsigned int step;
	uint64_t begun;
	bool taken, preempted;

	pthread_mutex_lock(&crew->lock);
	taken = share_take(crew, worker, &slice);
	step = crew->grow.step;
	pthread_mutex_unlock(&crew->lock);
	if (!taken)
		return false;
	turn_read(&turn);
	begun = bmm_host_clock();
	crew->work(crew, &slice, &outcome);
	begun = bmm_host_clock() - begun;
	preempted = begun >= SLOW_NS && turn_lost(&turn, begun);
	pthread_mutex_lock(&crew->lock);
	if (slice.cold)
		crew->reading = false;
	if (outcome.error)
		fail(crew, &slice, &outcome);
	else
		crew->report.done += slice.to - slice.from;
	if (!outcome.error && !outcome.there)
		account(worker, &slice, step, begun, preempted);
	pthread_mutex_unlock(&crew->lock);
	return true;
}

/* The node of a thread: they take turns. */
unsigned int crew_home(const struct crew *crew, unsigned int id)
{
	unsigned int node, left = id % SET_COUNT(&crew->nodes);

	for (node = 0; node < NODES_MAX; node++)
		if (SET_HAS(&crew->nodes, node) && !left--)
			break;
	return node;
}

/*
 * Binds a thread to its node; returns true if that changed its affinity. Starts
 * from what the caller was allowed: a new thread inherits where the caller is
 * bound now, which is another node's CPUs.
 */
bool crew_settle(const struct worker *worker, struct cpus *before)
{
	const struct crew *crew = worker->crew;
	struct nodes home = { 0 };
	struct cpus cpus;

	if (!crew->bound || !cpus_allowed(before))
		return false;
	cpus = crew->allowed;
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

static void *thread(void *arg)
{
	struct worker *worker = arg;
	struct crew *crew = worker->crew;
	struct cpus before;

	touch_stack();
	if (crew->mode)
		policy_set(crew->mode, (unsigned int)crew->node, NULL);
	crew_settle(worker, &before);
	while (work_once(worker))
		;
	pthread_mutex_lock(&crew->lock);
	crew->alive--;
	pthread_cond_signal(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static bool start_one(struct crew *crew, unsigned int id)
{
	struct worker *worker = &crew->room->workers[id];

	*worker = (struct worker){ .crew = crew, .id = id };
	if (crew->bound)
		worker->home = crew_home(crew, id);
	return start_thread(crew, worker, thread);
}

/* Joins threads that ended because they did not help. */
static void join_above(struct crew *crew, unsigned int id)
{
	while (crew->created >= id && crew->created)
		pthread_join(crew->room->workers[crew->created--].thread, NULL);
}

static void next_step(struct crew *crew)
{
	size_t done = crew->report.done;

	grow_next(&crew->grow, done, crew->end - crew->start - done);
}

/* Decides how many should work; what that may be is found out only if needed. */
static unsigned int decide(struct crew *crew)
{
	unsigned int most = THREADS_MAX, now;

	pthread_mutex_lock(&crew->lock);
	next_step(crew);
	if (crew->grow.now > 1 && !crew->limited) {
		crew->limited = true;
		most = !in_handler() && crew_expand(crew) ?
			       limit_threads(crew) :
			       1;
	}
	if (most < crew->grow.most) {
		crew->grow.most = most;
		next_step(crew);
	}
	now = crew->grow.now;
	pthread_mutex_unlock(&crew->lock);
	return now;
}

/* Starts as many as should work; if that fails, makes do with those running. */
static void start_more(struct crew *crew)
{
	unsigned int was = crew->grow.now, now = decide(crew);
	bool started;

	if (now < was)
		join_above(crew, now);
	while (crew->created + 1 < now) {
		started = start_one(crew, crew->created + 1);
		pthread_mutex_lock(&crew->lock);
		if (started) {
			crew->created++;
			crew->alive++; /* the thread may have ended before */
		} else {
			crew->grow.most = now = crew->created + 1;
			next_step(crew);
		}
		pthread_mutex_unlock(&crew->lock);
	}
	if (crew->report.threads < crew->created + 1)
		crew->report.threads = crew->created + 1;
}

/* Calls progress(); @last: even if TELL_NS has not passed. */
static void tell(struct crew *crew, bool last)
{
	uint64_t now = bmm_host_clock();
	size_t done;
	bool stop;

	if (!crew->options.progress || (!last && now - crew->told < TELL_NS))
		return;
	crew->told = now;
	pthread_mutex_lock(&crew->lock);
	done = crew->report.done;
	pthread_mutex_unlock(&crew->lock);
	stop = crew->options.progress(crew->options.context, done,
				      crew->end - crew->start);
	/* a forked child has none of the threads that may hold the lock */
	crew->forked = getpid() != crew->pid;
	if (stop && !last && !crew->forked) {
		pthread_mutex_lock(&crew->lock);
		crew->stop = true;
		crew->report.error = -ECANCELED;
		pthread_mutex_unlock(&crew->lock);
	}
}

/* Waits for a while; returns whether others are still working. */
static bool wait_for_others(struct crew *crew)
{
	struct timespec until;
	bool busy;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)TELL_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&crew->lock);
	if (crew->alive)
		pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
	busy = crew->alive;
	pthread_mutex_unlock(&crew->lock);
	return busy;
}

static void note_slowest(struct crew *crew)
{
	struct bmm_report *report = &crew->report;
	size_t others = crew->timed - crew->slow_len;
	double usual;

	if (!others || crew->slow_ns < SLOW_NS ||
	    crew->end - crew->start < SMALL)
		return;
	usual = (double)(crew->ns - crew->slow_ns) / (double)others *
		(double)crew->slow_len;
	if ((double)crew->slow_ns < SLOW_TIMES * usual)
		return;
	report->slow = (void *)crew->slow;
	report->slow_len = crew->slow_len;
	report->slow_ns = crew->slow_ns;
	report->usual_ns = (uint64_t)usual;
}

static void work_all(struct crew *crew)
{
	do {
		while (!crew->forked && work_once(&crew->self)) {
			start_more(crew);
			tell(crew, false);
		}
		if (!crew->forked)
			tell(crew, false);
	} while (!crew->forked && wait_for_others(crew));
	if (!crew->forked)
		join_above(crew, 1);
}

/**
 * crew_run() - process the whole range
 * @crew: from crew_init(), with work and segments set
 *
 * Return: 0, or a negative error number. Fills the report except for causes.
 */
int crew_run(struct crew *crew)
{
	struct bmm_report *report = &crew->report;
	uint64_t begun = bmm_host_clock();

	crew->told = begun;
	crew->pid = crew->options.progress ? getpid() : 0;
	work_all(crew);
	report->ns = bmm_host_clock() - begun;
	if (crew->forked) { /* what was in progress is unknown */
		report->reached = (void *)crew->start;
		report->error = -ECHILD;
		return report->error;
	}
	report->reached = (void *)share_reached(crew);
	if (crew->failure.error)
		report->error = crew->failure.error;
	note_slowest(crew);
	tell(crew, true);
	return report->error;
}
