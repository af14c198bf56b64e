// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap_stamp: writes the learned layout to all of a device's struct pages, as
 * many at a time as a section has, or one unit that is larger, with one CPU or
 * several of the node.
 *
 * The caller is a worker, the helpers are work items on the node. They take
 * portions one by one, so that one that is slow or late delays the others by
 * one portion at most. The caller does all that is left if no helper arrives:
 * nobody waits for a helper that has not begun.
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
u64 bmm_memmap_bytes(const struct memmap_request *req, unsigned long units)
{
	return (u64)units * req->geometry.records * req->geometry.record;
}

/* The node of the memory if it has CPUs (CXL, HBM: none), else the nearest. */
static int memmap_node(const struct memmap_request *req)
{
	return max(numa_nearest_node(zone_to_nid(req->zone), N_CPU), 0);
}

#define WORKERS_MAX   32UL /* workers, no matter what is asked for */
#define WORKERS_USUAL 8U   /* most workers, unless the operator asks for more */

/* Set by the operator, for ranges of any size; 0: by rule. */
static unsigned long memmap_workers;

/* From so many pages on, others are worth the time they take to start. */
#define MEMMAP_SHARED ((16UL << 30) / PAGE_SIZE)

/* How many CPUs stamp, the caller included. */
static unsigned int memmap_count_workers(const struct memmap_request *req)
{
	unsigned long setting = READ_ONCE(memmap_workers);

	if (setting)
		return min(setting, WORKERS_MAX);
	if (req->end - req->pfn < MEMMAP_SHARED)
		return 1;
	return clamp(cpumask_weight(cpumask_of_node(memmap_node(req))) / 4, 1U,
		     WORKERS_USUAL);
}

/* What to stamp, in portions. */
struct memmap_portions {
	const struct memmap_request *req;
	const struct bmm_backend *backend;
	unsigned long portion; /* units: those of a section, or one longer unit */
	unsigned long end;
	atomic_long_t next; /* the first unit that nobody has taken */
};

struct memmap_worker {
	struct work_struct work;
	struct memmap_portions *portions;
	unsigned long stamped; /* units */
	struct bmm_layout layout;
};

/*
 * Stamps what no other worker has taken; returns how many units. May be
 * preempted anywhere, and migrate: a context switch drains the stores of the
 * CPU it leaves.
 */
static unsigned long memmap_stamp_portions(struct memmap_portions *portions,
					   struct bmm_layout *layout)
{
	unsigned long first, n, stamped = 0;

	while ((first = atomic_long_fetch_add(portions->portion,
					      &portions->next)) <
	       portions->end) {
		n = min(portions->portion, portions->end - first);
		bmm_layout_stamp(layout, portions->backend,
				 memmap_first_page(portions->req), first, n);
		bmm_drain_stores();
		bmm_fault_delay();
		cond_resched();
		stamped += n;
	}
	return stamped;
}

static void memmap_worker_run(struct work_struct *work)
{
	struct memmap_worker *worker = container_of(work, struct memmap_worker,
						    work);

	worker->stamped = memmap_stamp_portions(worker->portions,
						&worker->layout);
}

/**
 * bmm_memmap_stamp() - stamp the units that the original did not build
 * @req:      the request, as divided by memmap.c
 * @layout: its layout, learned and verified
 *
 * Everything is drained when it returns, and no helper is left; out of memory,
 * the caller was the only one. May sleep.
 *
 * Return: the backend.
 */
const struct bmm_backend *bmm_memmap_stamp(const struct memmap_request *req,
					   struct bmm_layout *layout)
{
	struct memmap_portions portions = {
		.req = req,
		.backend = bmm_selected(BMM_STAMP),
		.portion = max(PAGES_PER_SECTION >> req->order, 1UL),
		.end = req->units - req->last_units,
		.next = ATOMIC_LONG_INIT(req->learned_units),
	};
	unsigned int helpers = memmap_count_workers(req) - 1, i;
	struct memmap_worker *workers;
	unsigned long shared = 0;

	workers = kvmalloc_array(helpers, sizeof(*workers),
				 GFP_KERNEL | __GFP_NOWARN);
	if (!workers)
		helpers = 0;
	for (i = 0; i < helpers; i++) {
		workers[i].portions = &portions;
		workers[i].stamped = 0;
		workers[i].layout = *layout;
		INIT_WORK(&workers[i].work, memmap_worker_run);
		/* for unbound work queues only (kernel/workqueue.c, 6.1 to 7.3) */
		queue_work_node(memmap_node(req), system_dfl_wq,
				&workers[i].work);
	}
	memmap_stamp_portions(&portions, layout);
	for (i = 0; i < helpers; i++) {
		/* one that has not begun never does: the others did its part */
		cancel_work_sync(&workers[i].work);
		shared += workers[i].stamped;
	}
	kvfree(workers);
	bmm_path_count(&bmm_memmap_path, BMM_MEMMAP_SHARED,
		       bmm_memmap_bytes(req, shared));
	return portions.backend;
}

struct bmm_tunable bmm_memmap_workers_file = BMM_TUNABLE(workers, memmap_workers,
							 WORKERS_MAX);
