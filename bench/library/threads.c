// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that share a sample, each on a CPU of its own. They are created once
 * and sleep while other variants are measured; before a sample its threads are
 * woken and spin until it begins, so that no wake-up is timed.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

struct worker {
	sem_t start_request;
	unsigned int number;
};

static cpu_set_t allowed;
static unsigned int gathered; /* threads, this one included */

/* Of the next sample. */
static const struct variant *work;
static char *work_base;
static unsigned int started; /* samples so far */
static unsigned int ready, done;

static inline void relax(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static unsigned int get_count(unsigned int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void add_one(unsigned int *p)
{
	__atomic_add_fetch(p, 1, __ATOMIC_RELEASE);
}

/* Pins thread @number to its own CPU among those allowed. */
static void pin_thread(unsigned int number)
{
	cpu_set_t cpus;
	int cpu = -1;

	do
		while (!CPU_ISSET(++cpu, &allowed))
			;
	while (number--);
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

/* Pins this thread to one CPU; returns it. */
unsigned int threads_init(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		CPU_ZERO(&allowed);
		CPU_SET(0, &allowed);
	}
	pin_thread(0);
	return (unsigned int)sched_getcpu();
}

/* How many threads can be measured: CPUs that this process may use. */
unsigned int threads_nr(void)
{
	return (unsigned int)CPU_COUNT(&allowed);
}

/*
 * How much of a sample each thread does, in whole pages; the last one also does
 * the remainder.
 */
size_t threads_share(const struct variant *v)
{
	return v->bytes / v->threads & ~(size_t)4095;
}

static void do_share(unsigned int number)
{
	size_t share = threads_share(work), from = number * share;

	if (number + 1 == work->threads)
		share = work->bytes - from;
	walk_range(work, work_base + from, share);
}

static void *worker_main(void *data)
{
	struct worker *self = data;
	unsigned int before;

	pin_thread(self->number);
	for (;;) {
		while (sem_wait(&self->start_request))
			;
		before = get_count(&started);
		add_one(&ready);
		while (get_count(&started) == before)
			relax();
		do_share(self->number);
		add_one(&done);
	}
	return NULL;
}

/* As many workers as can ever be used. */
static struct worker *make_workers(void)
{
	unsigned int n = threads_nr(), i;
	struct worker *workers = calloc(n, sizeof(*workers));
	pthread_t thread;

	for (i = 1; workers && i < n; i++) {
		workers[i].number = i;
		sem_init(&workers[i].start_request, 0, 0);
		if (pthread_create(&thread, NULL, worker_main, &workers[i]))
			workers = NULL;
	}
	if (workers)
		return workers;
	fprintf(stderr, "bmm-bench: no threads\n");
	exit(3);
}

/* Makes so many threads, this one included, wait for a sample to begin. */
void threads_gather(unsigned int nr)
{
	static struct worker *workers;

	if (!workers)
		workers = make_workers();
	ready = 0;
	for (gathered = 1; gathered < nr; gathered++)
		sem_post(&workers[gathered].start_request);
	while (get_count(&ready) != nr - 1)
		relax();
}

/* Does the job of a variant on all of its threads. */
void threads_run(const struct variant *v, char *base)
{
	if (gathered != v->threads)
		threads_gather(v->threads);
	work = v;
	work_base = base;
	done = 0;
	add_one(&started);
	do_share(0);
	while (get_count(&done) != v->threads - 1)
		relax();
	gathered = 0;
}
