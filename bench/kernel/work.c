// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work queues that the module uses: work for a node runs in a thread of its
 * own, with the one CPU's memory; any other work runs at once.
 */
#include <pthread.h>
#include <sched.h>

#include "native.h"

#define WORKERS_MAX 32

static struct worker {
	pthread_t thread;
	void *work; /* NULL: free */
	int caller; /* CPU */
} workers[WORKERS_MAX];

static cpu_set_t allowed; /* what the process was started with */

/* Stays on one CPU: another one has none of the data in its caches. */
void work_pin(void)
{
	cpu_set_t cpus;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static struct worker *worker_of(const void *work)
{
	size_t i;

	for (i = 0; i < WORKERS_MAX; i++)
		if (workers[i].work == work)
			return &workers[i];
	return NULL;
}

static void work_run(void *work)
{
	void (*run)(void *) = AT(void *, work, OFFSET("work_struct.func"));

	run(work);
}

/* Like a scheduler with an idle CPU: not on the caller's. */
static void worker_place(const struct worker *worker)
{
	cpu_set_t may = allowed;

	if (CPU_COUNT(&may) < 2)
		return;
	CPU_CLR(worker->caller, &may);
	sched_setaffinity(0, sizeof(may), &may);
}

static void *worker_main(void *worker)
{
	worker_place(worker);
	state_cpu();
	work_run(((struct worker *)worker)->work);
	return NULL;
}

STUB(bool, queue_work_node, int node, void *queue, void *work)
{
	struct worker *worker = worker_of(NULL);

	if (!worker)
		return false;
	*worker = (struct worker){ .work = work, .caller = sched_getcpu() };
	if (!pthread_create(&worker->thread, NULL, worker_main, worker))
		return true;
	worker->work = NULL;
	return false;
}

STUB(bool, cancel_work_sync, void *work)
{
	struct worker *worker = worker_of(work);

	if (!worker)
		return false;
	pthread_join(worker->thread, NULL);
	worker->work = NULL;
	return false;
}

STUB(bool, queue_work_on, int cpu, void *queue, void *work)
{
	work_run(work);
	return true;
}
