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
#include "memmap.h"
#include "memmap_stamp.h"

enum {
	MEMMAP_SHARED_BYTES = BMM_OWN, /* stamped by others than the caller */
};

/* Bytes of struct pages in @units units. */
u64 bmm_memmap_bytes(const struct bringup *b, unsigned long units)
{
	return (u64)units * b->geometry.records * b->geometry.record;
}

/*
 * Device memory is written at another rate than ordinary memory of its node:
 * struct pages on the device itself (altmap) have a pick of their own.
 */
#define NODES 8 /* higher nodes share picks, modulo this */

static struct bmm_pick memmap_picks[2 * NODES];

static void memmap_label(unsigned int which, char *buf, size_t size)
{
	scnprintf(buf, size, "node%u%s", which / 2, which % 2 ? "_own" : "");
}

struct bmm_picks bmm_memmap_backend = {
	.name = "backend",
	.op = BMM_STAMP,
	.pick = memmap_picks,
	.label = memmap_label,
};

/** bmm_memmap_init() - count the picks; call before the path is in sysfs */
void __init bmm_memmap_init(void)
{
	bmm_memmap_backend.nr = 2 * min(nr_node_ids, (unsigned int)NODES);
}

static int memmap_node(const struct bringup *b)
{
	return max(zone_to_nid(b->zone), 0);
}

static unsigned int memmap_which(const struct bringup *b)
{
	return 2 * (memmap_node(b) % NODES) + !!pgmap_altmap(b->pgmap);
}

/*
 * How many CPUs stamp: above 16 GiB a second one may be worth the time it takes
 * to start. A number set by the operator holds for all ranges.
 */
static unsigned long memmap_workers;
static struct bmm_crew_size memmap_crews[2 * NODES];

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

static void memmap_stamping(struct stamping *s, const struct bringup *b)
{
	s->b = b;
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
 * May be preempted anywhere, and migrate: a context switch drains the stores of
 * the CPU it leaves.
 */
static unsigned long memmap_stamp_section(const struct stamping *s,
					  struct bmm_layout *layout,
					  unsigned long nr)
{
	unsigned long first, n = memmap_section(s, nr, &first);

	bmm_layout_stamp(layout, s->backend, memmap_first_page(s->b), first, n);
	bmm_drain_stores();
	return n;
}

static void memmap_pause(void)
{
	bmm_fault_delay();
	cond_resched();
}

static void memmap_part(const void *job, void *layout, unsigned long nr)
{
	memmap_stamp_section(job, layout, nr);
	memmap_pause();
}

static void memmap_log_crew(unsigned int which)
{
	const struct bmm_crew_size *size = &memmap_crews[which];
	char label[24];

	memmap_label(which, label, sizeof(label));
	pr_info("memmap: workers: %s: %u, at %u MB/s; %u at %u MB/s\n", label,
		size->members, size->best, size->other, size->rate);
}

/* Stamps the sections from @from on with several CPUs. */
static void memmap_share(const struct stamping *s, struct bmm_layout *layout,
			 unsigned long from, unsigned int most)
{
	unsigned int which = memmap_which(s->b);
	struct bmm_crew crew = {
		.part = memmap_part,
		.job = s,
		.own = layout,
		.own_size = sizeof(*layout),
		.bytes = bmm_memmap_bytes(s->b, s->step),
		.end = memmap_sections(s),
		.node = memmap_node(s->b),
		.most = most,
	};
	bool settled;

	if (!READ_ONCE(memmap_workers))
		crew.size = &memmap_crews[which];
	settled = crew.size && crew.size->settled;
	bmm_crew_run(&crew, from);
	if (crew.size && crew.size->settled && !settled)
		memmap_log_crew(which);
	bmm_path_count(&bmm_memmap, MEMMAP_SHARED_BYTES,
		       crew.shared * crew.bytes);
}

/**
 * bmm_memmap_stamp() - stamp the units that the original did not build
 * @b:      the request, as divided by memmap.c
 * @layout: its layout, learned and verified
 *
 * Section by section, each a sample while the pick measures; then the crew does
 * the rest. Everything is drained when it returns. May sleep.
 *
 * Return: the backend of the caller's last section.
 */
const struct bmm_backend *bmm_memmap_stamp(const struct bringup *b,
					   struct bmm_layout *layout)
{
	unsigned int which = memmap_which(b), most = memmap_most(b);
	struct stamping s = {};
	struct bmm_turn turn;
	unsigned long nr, n;

	memmap_stamping(&s, b);
	for (nr = 0; nr < memmap_sections(&s); nr++) {
		turn.pick = NULL;
		s.backend = READ_ONCE(bmm_memmap_backend.forced);
		if (!s.backend)
			s.backend = bmm_turn_begin(&turn, &memmap_picks[which],
						   BMM_STAMP);
		if (!turn.pick && most > 1) {
			memmap_share(&s, layout, nr, most);
			break;
		}
		n = memmap_stamp_section(&s, layout, nr);
		if (bmm_turn_end(&turn, bmm_memmap_bytes(b, n)))
			bmm_picks_log(&bmm_memmap, &bmm_memmap_backend, which);
		memmap_pause();
	}
	return s.backend;
}

static ssize_t memmap_workers_show(struct bmm_path *path, unsigned int index,
				   char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(memmap_workers));
}

/* Any write resets what was measured. */
static ssize_t memmap_workers_store(struct bmm_path *path, unsigned int index,
				    const char *buf, size_t len)
{
	unsigned long value;
	int err = bmm_parse_number(path, buf, BMM_CREW_MOST, &value);

	if (err)
		return err;
	WRITE_ONCE(memmap_workers, value);
	memset(memmap_crews, 0, sizeof(memmap_crews));
	return len;
}

struct bmm_attribute bmm_memmap_workers_attr = {
	.attr = { .name = "workers", .mode = 0644 },
	.show = memmap_workers_show,
	.store = memmap_workers_store,
};

struct bmm_attribute bmm_memmap_shared_attr = {
	.attr = { .name = "shared_bytes", .mode = 0444 },
	.show = bmm_counter_show,
	.index = MEMMAP_SHARED_BYTES,
};
