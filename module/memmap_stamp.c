// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap_stamp: writes the learned layout to all of a device's struct pages, as
 * many at a time as a section has, or one unit that is larger, with one CPU or
 * several of the node: a crew.
 *
 * The caller is a member, the others are work items on the node. They take
 * portions one by one, so that one that is slow or late delays the others by
 * one portion at most. The caller does all that is left if no other arrives:
 * nobody waits for a member that has not begun.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "../core/drain.h"
#include "../core/learn.h"
#include "control.h"
#include "compat/compat.h"
#include "faults.h"
#include "memmap.h"
#include "select.h"

/* Bytes of struct pages in @units units. */
u64 bmm_memmap_bytes(const struct bringup *b, unsigned long units)
{
	return (u64)units * b->geometry.records * b->geometry.record;
}

/* The node of the memory if it has CPUs (CXL, HBM: none), else the nearest. */
static int memmap_node(const struct bringup *b)
{
	return max(numa_nearest_node(zone_to_nid(b->zone), N_CPU), 0);
}

#define CREW_MOST 32UL /* members, no matter what is asked for */
#define USUAL	  8U   /* most members, unless the operator asks for more */

/* Set by the operator, for ranges of any size; 0: by rule. */
static unsigned long memmap_workers;

/* From so many pages on, others are worth the time they take to start. */
#define MEMMAP_SHARED ((16UL << 30) / PAGE_SIZE)

/* How many CPUs stamp, the caller included. */
static unsigned int memmap_most(const struct bringup *b)
{
	unsigned long wanted = READ_ONCE(memmap_workers);

	if (wanted)
		return min(wanted, CREW_MOST);
	if (b->end - b->pfn < MEMMAP_SHARED)
		return 1;
	return clamp(cpumask_weight(cpumask_of_node(memmap_node(b))) / 4, 1U,
		     USUAL);
}

/* What to stamp, in portions. */
struct stamping {
	const struct bringup *b;
	const struct bmm_backend *backend;
	unsigned long portion; /* units: those of a section, or one longer unit */
	unsigned long end;
	atomic_long_t next; /* the first unit that nobody has taken */
};

struct member {
	struct work_struct work;
	struct stamping *s;
	unsigned long done; /* units */
	struct bmm_layout layout;
};

/*
 * Stamps what no other member has taken; returns how many units. May be
 * preempted anywhere, and migrate: a context switch drains the stores of the
 * CPU it leaves.
 */
static unsigned long memmap_take(struct stamping *s, struct bmm_layout *layout)
{
	unsigned long first, n, done = 0;

	while ((first = atomic_long_fetch_add(s->portion, &s->next)) < s->end) {
		n = min(s->portion, s->end - first);
		bmm_layout_stamp(layout, s->backend, memmap_first_page(s->b),
				 first, n);
		bmm_drain_stores();
		bmm_fault_delay();
		cond_resched();
		done += n;
	}
	return done;
}

static void member_work(struct work_struct *work)
{
	struct member *member = container_of(work, struct member, work);

	member->done = memmap_take(member->s, &member->layout);
}

/**
 * bmm_memmap_stamp() - stamp the units that the original did not build
 * @b:      the request, as divided by memmap.c
 * @layout: its layout, learned and verified
 *
 * Everything is drained when it returns, and no member is left; out of memory,
 * the caller was the only one. May sleep.
 *
 * Return: the backend.
 */
const struct bmm_backend *bmm_memmap_stamp(const struct bringup *b,
					   struct bmm_layout *layout)
{
	struct stamping s = {
		.b = b,
		.backend = bmm_selected(BMM_STAMP),
		.portion = max(PAGES_PER_SECTION >> b->order, 1UL),
		.end = b->units - b->last,
		.next = ATOMIC_LONG_INIT(b->learn),
	};
	unsigned int others = memmap_most(b) - 1, i;
	struct member *members;
	unsigned long shared = 0;

	members = kvmalloc_array(others, sizeof(*members),
				 GFP_KERNEL | __GFP_NOWARN);
	if (!members)
		others = 0;
	for (i = 0; i < others; i++) {
		members[i].s = &s;
		members[i].done = 0;
		members[i].layout = *layout;
		INIT_WORK(&members[i].work, member_work);
		/* for unbound work queues only (kernel/workqueue.c, 6.1 to 7.3) */
		queue_work_node(memmap_node(b), system_dfl_wq, &members[i].work);
	}
	memmap_take(&s, layout);
	for (i = 0; i < others; i++) {
		/* one that has not begun never does: the others did its part */
		cancel_work_sync(&members[i].work);
		shared += members[i].done;
	}
	kvfree(members);
	bmm_path_count(&bmm_memmap_path, BMM_MEMMAP_SHARED,
		       bmm_memmap_bytes(b, shared));
	return s.backend;
}

struct bmm_tunable bmm_memmap_workers_file = BMM_TUNABLE(workers, memmap_workers,
							 CREW_MOST);
