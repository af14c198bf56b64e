// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap_stamp: writes the learned layout to all of a device's struct pages, a
 * section at a time, with one CPU or several of the node.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sysfs.h>

#include "../core/drain.h"
#include "../core/learn.h"
#include "control.h"
#include "crew.h"
#include "faults.h"
#include "compat/compat.h"
#include "memmap_stamp.h"
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

/*
 * How many CPUs stamp: from 16 GiB on others are worth the time they take to
 * start. A number set by the operator holds for all ranges.
 */
static unsigned long memmap_workers;

#define MEMMAP_SHARED ((16UL << 30) / PAGE_SIZE)

static unsigned int memmap_most(const struct bringup *b)
{
	unsigned long wanted = READ_ONCE(memmap_workers);

	if (!wanted && b->end - b->pfn < MEMMAP_SHARED)
		return 1;
	return bmm_crew_most(memmap_node(b), wanted);
}

/*
 * struct stamping - what to stamp, by sections, or by single units if those are
 * longer; the first and the last may be partial
 */
struct stamping {
	const struct bringup *b;
	const struct bmm_backend *backend;
	unsigned long step;  /* units per section */
	unsigned long base;  /* start of the first section, in units */
	unsigned long first; /* first unit to stamp */
	unsigned long end;
};

static void memmap_stamping(struct stamping *s)
{
	const struct bringup *b = s->b;

	s->step = max(PAGES_PER_SECTION >> b->order, 1UL);
	s->first = b->learn;
	s->end = b->units - b->last;
	/* modulo 2^64: may lie before the first unit */
	s->base = s->first - ((b->pfn >> b->order) + s->first) % s->step;
}

static unsigned long memmap_sections(const struct stamping *s)
{
	return DIV_ROUND_UP(s->end - s->base, s->step);
}

/* Returns how many units of a section to stamp, and the first of them. */
static unsigned long memmap_section(const struct stamping *s, unsigned long nr,
				    unsigned long *first)
{
	unsigned long end = min(s->base + (nr + 1) * s->step, s->end);

	*first = nr ? s->base + nr * s->step : s->first;
	return end - *first;
}

/*
 * Stamps a section. May be preempted anywhere, and migrate: a context switch
 * drains the stores of the CPU it leaves.
 */
static void memmap_part(const void *job, void *layout, unsigned long nr)
{
	const struct stamping *s = job;
	unsigned long first, n = memmap_section(s, nr, &first);

	bmm_layout_stamp(layout, s->backend, memmap_first_page(s->b), first, n);
	bmm_drain_stores();
	bmm_fault_delay();
	cond_resched();
}

/**
 * bmm_memmap_stamp() - stamp the units that the original did not build
 * @b:      the request, as divided by memmap.c
 * @layout: its layout, learned and verified
 *
 * Everything is drained when it returns. May sleep.
 *
 * Return: the backend.
 */
const struct bmm_backend *bmm_memmap_stamp(const struct bringup *b,
					   struct bmm_layout *layout)
{
	struct stamping s = { .b = b, .backend = bmm_selected(BMM_STAMP) };
	struct bmm_crew crew = {
		.part = memmap_part,
		.job = &s,
		.own = layout,
		.own_size = sizeof(*layout),
		.node = memmap_node(b),
		.most = memmap_most(b),
	};

	memmap_stamping(&s);
	crew.parts = memmap_sections(&s);
	bmm_crew_run(&crew);
	bmm_path_count(&bmm_memmap_path, BMM_MEMMAP_SHARED,
		       crew.shared * bmm_memmap_bytes(b, s.step));
	return s.backend;
}

struct bmm_tunable bmm_memmap_workers_file = BMM_TUNABLE(workers, memmap_workers,
							 BMM_CREW_MOST);
