// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that share a range. The caller is one of them: it starts the others
 * while they help (grow.c), reports progress to the program, and works alone if
 * the range is small or no thread can be created.
 */
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#define STACK	   (256 * KIB) /* plus the libraries' TLS */
#define TELL_NS	   10000000ULL /* between calls of the program's progress() */
#define SLOW_TIMES 8U /* documented; more than caches and nodes cause */
#define SLOW_NS	   10000000ULL /* and long enough to be noticed */

/* NULL: no memory. Not malloc(): the caller may be an mmap() wrapper. */
struct crew *crew_make(uintptr_t start, uintptr_t end,
		       const struct bmm_options *options)
{
	struct crew *crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (crew == MAP_FAILED)
		return NULL;
	crew->start = start;
	crew->end = end;
	crew->options = *options;
	crew->pages.pagemap = -1;
	crew->huge = LEAST;
	crew->report.threads = 1;
	crew->pid = getpid();
	crew->segments[0] = (struct segment){ .next = start, .end = end };
	crew->segments[0].map.page = (size_t)sysconf(_SC_PAGESIZE);
	crew->segments_nr = 1;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->changed, NULL);
	grow_start(&crew->grow, 1);
	return crew;
}

void crew_free(struct crew *crew)
{
	pages_close(&crew->pages);
	if (!crew->forked) { /* else a thread of the parent may hold them */
		pthread_cond_destroy(&crew->changed);
		pthread_mutex_destroy(&crew->lock);
	}
	munmap(crew, sizeof(*crew));
}

static void fail(struct crew *crew, const struct slice *slice,
		 const struct outcome *outcome)
{
	crew->stop = true;
	crew->report.done += outcome->failed - slice->from;
	if (!crew->failure.error || outcome->failed < crew->failure.failed)
		crew->failure = *outcome;
}

static void account(struct crew *crew, const struct slice *slice,
		    unsigned int id, unsigned int step, uint64_t ns)
{
	size_t len = slice->to - slice->from;

	crew->timed += len;
	crew->ns += ns;
	grow_feed(&crew->grow, id, step, len, ns);
	/* the slowest by rate, compared without a division */
	if (!crew->slow_len || (double)ns * (double)crew->slow_len >
				       (double)crew->slow_ns * (double)len) {
		crew->slow = slice->from;
		crew->slow_len = len;
		crew->slow_ns = ns;
	}
}

/* Does one slice; returns false if none is left to take. */
static bool work_once(struct crew *crew, unsigned int id)
{
	struct outcome outcome = { 0 };
	struct slice slice;
	unsigned int step;
	uint64_t begun;
	bool taken;

	pthread_mutex_lock(&crew->lock);
	taken = share_take(crew, id, &slice);
	step = crew->grow.step;
	pthread_mutex_unlock(&crew->lock);
	if (!taken)
		return false;
	begun = bmm_host_clock();
	crew->work(crew, &slice, &outcome);
	begun = bmm_host_clock() - begun;
	pthread_mutex_lock(&crew->lock);
	if (outcome.error)
		fail(crew, &slice, &outcome);
	else
		crew->report.done += slice.to - slice.from;
	if (!outcome.error && !outcome.there)
		account(crew, &slice, id, step, begun);
	pthread_mutex_unlock(&crew->lock);
	return true;
}

/*
 * Binds a thread to its node; returns true if that changed its affinity. Starts
 * from what the caller was allowed: a new thread inherits where the caller is
 * bound now, which is another node's CPUs.
 */
bool crew_settle(const struct crew *crew, unsigned int id, struct cpus *before)
{
	struct nodes home = { 0 };
	struct cpus cpus = crew->allowed;

	if (!crew->bound || !cpus_allowed(before))
		return false;
	SET_ADD(&home, crew->home[id]);
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
	struct start *start = arg;
	struct crew *crew = start->crew;
	struct cpus before;

	touch_stack();
	if (crew->mode)
		policy_set(crew->mode, (unsigned int)crew->node, NULL);
	crew_settle(crew, start->id, &before);
	while (work_once(crew, start->id))
		;
	pthread_mutex_lock(&crew->lock);
	crew->alive--;
	pthread_cond_signal(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

/*
 * The program's handlers run on its own threads; faults are not blocked. Never
 * blocked in the caller: pthread_create() may wait for the program's malloc().
 */
static int block_signals(pthread_attr_t *attr)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGSYS };
	sigset_t set;
	size_t i;

	sigfillset(&set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&set, faults[i]);
	return pthread_attr_setsigmask_np(attr, &set);
}

/* Sums up TLS, which comes out of the stack: with too little left, EINVAL. */
static int add_tls(struct dl_phdr_info *object, size_t size, void *sum)
{
	const ElfW(Phdr) * header;
	size_t i;

	(void)size;
	for (i = 0; i < object->dlpi_phnum; i++) {
		header = &object->dlpi_phdr[i];
		if (header->p_type == PT_TLS)
			*(size_t *)sum += header->p_memsz + header->p_align;
	}
	return 0;
}

static bool start_one(struct crew *crew, unsigned int id)
{
	struct start *start = &crew->starts[id];
	pthread_attr_t small;
	bool started;

	*start = (struct start){ crew, id };
	if (!crew->stack) {
		crew->stack = STACK;
		dl_iterate_phdr(add_tls, &crew->stack);
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, crew->stack);
	started = !block_signals(&small) &&
		  !pthread_create(&crew->threads[id], &small, thread, start);
	pthread_attr_destroy(&small);
	return started;
}

/* Joins threads that ended because they did not help. */
static void join_above(struct crew *crew, unsigned int id)
{
	while (crew->created >= id && crew->created)
		pthread_join(crew->threads[crew->created--], NULL);
}

/* Starts as many as should work; if that fails, makes do with those running. */
static void start_more(struct crew *crew)
{
	unsigned int now, was;
	bool started;

	pthread_mutex_lock(&crew->lock);
	was = crew->grow.now;
	grow_next(&crew->grow, crew->report.done);
	now = crew->grow.now;
	pthread_mutex_unlock(&crew->lock);
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
			grow_next(&crew->grow, crew->report.done);
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
		pthread_cond_clockwait(&crew->changed, &crew->lock,
				       CLOCK_MONOTONIC, &until);
	busy = crew->alive;
	pthread_mutex_unlock(&crew->lock);
	return busy;
}

static void note_slowest(struct crew *crew)
{
	struct bmm_report *report = &crew->report;
	size_t others = crew->timed - crew->slow_len;
	double usual;

	if (!others || crew->slow_ns < SLOW_NS)
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
		while (!crew->forked && work_once(crew, 0)) {
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
 * @crew: from crew_make(), with work and segments set
 *
 * Return: 0, or a negative error number. Fills the report except for causes.
 */
int crew_run(struct crew *crew)
{
	struct bmm_report *report = &crew->report;
	uint64_t begun = bmm_host_clock();

	crew->told = begun;
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
