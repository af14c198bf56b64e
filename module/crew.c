// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members are work items on the node. They take parts one by one, so that a
 * member that is slow or late delays the others by one part at most.
 */
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "compat/compat.h"
#include "crew.h"

#define USUAL 8U /* most members, unless the operator asks for more */

struct member {
	struct work_struct work;
	struct bmm_crew *crew;
	unsigned long parts; /* parts done */
	u8 own[] __aligned(8);
};

/* noinline: the one call through a pointer that the tests allow */
static noinline unsigned long crew_take(struct bmm_crew *crew, void *own)
{
	unsigned long nr, parts = 0;

	while ((nr = atomic_long_fetch_inc(&crew->next)) < crew->parts) {
		crew->part(crew->job, own, nr);
		parts++;
	}
	return parts;
}

static void member_work(struct work_struct *work)
{
	struct member *member = container_of(work, struct member, work);

	member->parts = crew_take(member->crew, member->own);
}

static struct member *member_new(struct bmm_crew *crew)
{
	struct member *member = kmalloc(struct_size(member, own, crew->own_size),
					GFP_KERNEL | __GFP_NOWARN);

	if (!member)
		return NULL;
	INIT_WORK(&member->work, member_work);
	member->crew = crew;
	member->parts = 0;
	memcpy(member->own, crew->own, crew->own_size);
	return member;
}

/**
 * bmm_crew_run() - do all parts
 * @crew: the job
 *
 * Sleeps. When it returns, all parts are done and no member is left; out of
 * memory, there were fewer.
 */
void bmm_crew_run(struct bmm_crew *crew)
{
	struct member *members[BMM_CREW_MOST - 1];
	unsigned int others = 0, i;

	atomic_long_set(&crew->next, 0);
	while (others + 1 < crew->most && (members[others] = member_new(crew)))
		others++;
	for (i = 0; i < others; i++)
		queue_work_node(crew->node, system_dfl_wq, &members[i]->work);
	crew_take(crew, crew->own);
	for (i = 0; i < others; i++) {
		/* one that has not begun never does: the others did its parts */
		cancel_work_sync(&members[i]->work);
		crew->shared += members[i]->parts;
		kfree(members[i]);
	}
}

/**
 * bmm_crew_most() - how many CPUs may work on a job
 * @node:   the node whose CPUs are to do it
 * @wanted: set by the operator; 0: a quarter of the node's CPUs, at most USUAL
 *
 * Return: the number, the caller included.
 */
unsigned int bmm_crew_most(int node, unsigned int wanted)
{
	if (wanted)
		return min(wanted, BMM_CREW_MOST);
	return clamp(cpumask_weight(cpumask_of_node(node)) / 4, 1U, USUAL);
}
