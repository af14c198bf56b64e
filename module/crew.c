// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members are work items on the node. They take parts one by one, so that a
 * member that is slow or late delays the others by one part at most. While the
 * number of members is being measured, parts are done in rounds; at the end of
 * a round all members have finished.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "compat/compat.h"
#include "crew.h"

#define ROUND 8 /* parts per member in a measured round */

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

	while ((nr = atomic_long_fetch_inc(&crew->next)) < crew->stop) {
		crew->part(crew->job, own, nr);
		parts++;
	}
	return parts;
}

static void member_work(struct work_struct *work)
{
	struct member *member = container_of(work, struct member, work);

	member->parts += crew_take(member->crew, member->own);
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

/* Cancels members that have not begun: the others did their parts. */
static void crew_round(struct bmm_crew *crew, struct member *members[],
		       unsigned int others)
{
	unsigned int i;

	for (i = 0; i < others; i++)
		queue_work_node(crew->node, system_dfl_wq, &members[i]->work);
	crew_take(crew, crew->own);
	for (i = 0; i < others; i++)
		cancel_work_sync(&members[i]->work);
}

/* Adds members up to @wanted, or until out of memory; returns how many. */
static unsigned int crew_gather(struct bmm_crew *crew, struct member *members[],
				unsigned int have, unsigned int wanted)
{
	while (have < wanted && (members[have] = member_new(crew)))
		have++;
	return have;
}

static bool crew_measures(const struct bmm_crew *crew)
{
	return crew->size && !READ_ONCE(crew->size->settled);
}

/* Does parts from @first on, for one round if measuring. */
static unsigned long crew_rounds(struct bmm_crew *crew, unsigned long first,
				 struct member *members[], unsigned int others,
				 bool measure)
{
	unsigned long parts = crew->end - first;
	u64 begun = ktime_get_ns(), ns;

	if (measure)
		parts = min(parts, (others + 1UL) * ROUND);
	atomic_long_set(&crew->next, first);
	crew->stop = first + parts;
	crew_round(crew, members, others);
	ns = max(ktime_get_ns() - begun, 1ULL);
	/* a round that was cut short proves nothing */
	if (measure && parts == (others + 1UL) * ROUND)
		bmm_crew_learn(crew->size, crew->most, others + 1,
			       crew->bytes * parts * 1000 / ns);
	return first + parts;
}

/**
 * bmm_crew_run() - do all parts from @first on
 * @crew:  the job
 * @first: the first part
 *
 * Sleeps. When it returns, all parts are done and no member is left.
 */
void bmm_crew_run(struct bmm_crew *crew, unsigned long first)
{
	struct member *members[BMM_CREW_MOST - 1];
	unsigned int have = 0, others, i;
	bool measure;

	while (first < crew->end) {
		measure = crew_measures(crew);
		others = crew->most - 1;
		if (crew->size)
			others = bmm_crew_members(crew->size, crew->most) - 1;
		have = crew_gather(crew, members, have, others);
		measure &= have >= others;
		first = crew_rounds(crew, first, members, min(have, others),
				    measure);
	}
	for (i = 0; i < have; i++) {
		crew->shared += members[i]->parts;
		kfree(members[i]);
	}
}

/**
 * bmm_crew_most() - how many CPUs may work on a job
 * @node:   the node of the memory written; if it has no CPU, the caller's
 * @wanted: set by the operator; 0: a quarter of the node's CPUs
 *
 * Return: the number, the caller included.
 */
unsigned int bmm_crew_most(int node, unsigned int wanted)
{
	unsigned int cpus;

	if (wanted)
		return min(wanted, BMM_CREW_MOST);
	cpus = cpumask_weight(cpumask_of_node(node));
	if (!cpus)
		cpus = cpumask_weight(cpumask_of_node(numa_node_id()));
	return clamp(cpus / 4, 1U, BMM_CREW_MOST);
}
