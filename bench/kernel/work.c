// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work queues that the module uses: work for a node runs in a thread of its
 * own, with the one CPU's memory; any other work runs at once.
 */
#include <pthread.h>
#include <sched.h>

#include "native.h"

#define OTHERS_MAX 32

static struct other {
	pthread_t thread;
	void *work; /* NULL: free */
	int caller; /* CPU */
} others[OTHERS_MAX];

static cpu_set_t allowed; /* what the process was started with */

/* Stays on one CPU: another one has none of the data in its caches. */
void work_pin(void)
{
	cpu_set_t one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static struct other *other_of(const void *work)
{
	size_t i;

	for (i = 0; i < OTHERS_MAX; i++)
		if (others[i].work == work)
			return &others[i];
	return NULL;
}

static void work_run(void *work)
{
	void (*run)(void *) = AT(void *, work, OFFSET("work_struct.func"));

	run(work);
}

/* Like a scheduler with an idle CPU: not on the caller's. */
static void other_place(const struct other *other)
{
	cpu_set_t may = allowed;

	if (CPU_COUNT(&may) < 2)
		return;
	CPU_CLR(other->caller, &may);
	sched_setaffinity(0, sizeof(may), &may);
}

static void *other_main(void *other)
{
	other_place(other);
	state_cpu();
	work_run(((struct other *)other)->work);
	return NULL;
}

STUB(bool, queue_work_node, int node, void *queue, void *work)
{
	struct other *other = other_of(NULL);

	if (!other)
		return false;
	*other = (struct other){ .work = work, .caller = sched_getcpu() };
	if (!pthread_create(&other->thread, NULL, other_main, other))
		return true;
	other->work = NULL;
	return false;
}

STUB(bool, cancel_work_sync, void *work)
{
	struct other *other = other_of(work);

	if (!other)
		return false;
	pthread_join(other->thread, NULL);
	other->work = NULL;
	return false;
}

STUB(bool, queue_work_on, int cpu, void *queue, void *work)
{
	work_run(work);
	return true;
}
