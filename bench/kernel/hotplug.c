// SPDX-License-Identifier: GPL-2.0-only
/*
 * hotplug: memmap_init_range() on the blocks of plugged-in memory, one after
 * another. Writing struct pages is not all: the kernel reads them again at
 * once, to free the pages, so "-then-free" ends with a store to each.
 *
 * And set_zone_contiguous() on all of it: as the last block joins, before it is
 * online, or ("-whole") with all blocks online.
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

#define START	0x100000ULL /* the first PFN, at 4 GiB */
#define BLOCK	PAGES_SECTION
#define BLOCKS	16 /* per sample */
#define PLUGGED 1  /* MEMINIT_HOTPLUG */

enum kind {
	ALONE,
	FREED,
	JOINS,
	WHOLE,
};

/* Before 6.18 there is no last argument: it is ignored. */
typedef void init_fn(uint64_t pages, int nid, uint64_t zone, uint64_t from,
		     uint64_t zone_end, int context, void *altmap, int type,
		     bool isolate);

typedef void contiguous_fn(void *zone);

static char *pages_at;
static uint64_t record, blocks, at, *sums;
static PER_KERNEL uint64_t count, movable;
static PER_KERNEL init_fn *init_range;
static PER_KERNEL contiguous_fn *set_contiguous;
static PER_KERNEL char *zone;
static bool answer; /* the kernel's */

/* The first function is not hooked, the second one is. */
static const struct mode modes[] = { { "on", NO_OP, NULL }, { NULL, -1, NULL } };

static void add(struct scenario *s, const char *name, enum kind kind)
{
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->kind = kind;
	s->pages = BLOCK;
	s->bytes = BLOCK * record;
	s->repeat = BLOCKS;
	s->modes = modes + (kind < JOINS);
	s->unlimited = kind >= JOINS;
}

static char *block(uint64_t nr)
{
	return pages_at + nr * BLOCK * record;
}

static void init(uint64_t nr)
{
	init_range(BLOCK, 0, movable, START + nr * BLOCK, 0, PLUGGED, NULL, 1,
		   true);
}

static void zone_make(void)
{
	char *node = require_memory(SIZE("pglist_data"));

	AT(char *, symbol("node_data"), 0) = node;
	zone = node + OFFSET("pglist_data.node_zones") + movable * SIZE("zone");
	AT(uint64_t, zone, OFFSET("zone.zone_start_pfn")) = START;
	AT(uint64_t, zone, OFFSET("zone.spanned_pages")) = blocks * BLOCK;
}

static unsigned int hotplug_setup(struct scenario *list, uint64_t size)
{
	record = SIZE("page");
	count = OFFSET("page._refcount");
	movable = ENUM("ZONE_MOVABLE");
	blocks = size / PAGE / BLOCK;
	if (blocks < BLOCKS)
		fatal("too small: give %llu GiB or more",
		      (unsigned long long)(BLOCKS * BLOCK * PAGE >> 30));
	add(&list[0], "hotplug-block-128m", ALONE);
	add(&list[1], "hotplug-block-128m-then-free", FREED);
	add(&list[2], "hotplug-contiguous", JOINS);
	add(&list[3], "hotplug-contiguous-whole", WHOLE);
	set_contiguous = (contiguous_fn *)symbol("set_zone_contiguous");
	init_range = (init_fn *)symbol("memmap_init_range");
	state_sections(START, blocks * BLOCK, false);
	pages_at = state_pages(START, blocks * BLOCK);
	sums = (uint64_t *)map_memory(blocks * sizeof(*sums));
	zone_make();
	return 4;
}

/* All blocks are initialised and online, if that is the question. */
static void hotplug_enter(const struct scenario *s)
{
	uint64_t nr;

	for (nr = 0; nr < blocks; nr++) {
		state_early(START + nr * BLOCK,
			    s->kind == WHOLE ||
				    (s->kind == JOINS && nr < blocks - 1));
		if (s->kind >= JOINS)
			init(nr);
	}
}

/* Moves to the next block: the one least recently in the cache. */
static void hotplug_reset(const struct scenario *s)
{
	at = (at + 1) % blocks;
	AT(bool, zone, OFFSET("zone.contiguous")) = false;
}

/* As __free_pages_core() does: a flag and a count in each struct page. */
static void free_pages(const struct scenario *s)
{
	char *page = block(at), *end = page + s->bytes;

	for (; s->kind == FREED && page < end; page += record) {
		AT(volatile uint64_t, page, 0) &= ~(uint64_t)1;
		AT(volatile uint32_t, page, count) = 0;
	}
}

static void hotplug_call(const struct scenario *s, const struct variant *variant)
{
	if (s->kind >= JOINS)
		return set_contiguous(zone);
	if (variant)
		limit_write(variant->limit, BMM_STAMP, block(at), NULL,
			    s->bytes);
	else
		init(at);
	free_pages(s);
}

static uint64_t sum(uint64_t nr)
{
	return checksum(block(nr), BLOCK * record);
}

/*
 * Sums of each block as the kernel makes it: struct pages hold their addresses.
 * What a limit stores is not struct pages, but as many bytes.
 */
static void hotplug_keep(const struct scenario *s)
{
	uint64_t i;

	answer = AT(bool, zone, OFFSET("zone.contiguous"));
	if (answer != (s->kind == WHOLE))
		fatal("%s: the kernel's answer is wrong", s->name);
	for (i = 0; s->kind < JOINS && i < blocks; i++) {
		hotplug_reset(s);
		hotplug_call(s, NULL);
		sums[at] = sum(at);
	}
	if (s->kind < JOINS)
		pages_keep(block(at), record);
}

/* Compares the blocks of the sample, the last one first. */
static bool hotplug_right(const struct scenario *s)
{
	uint64_t i, nr = at;

	if (s->kind >= JOINS)
		return AT(bool, zone, OFFSET("zone.contiguous")) == answer;
	for (i = 0; i < s->repeat; i++, nr = (nr ? nr : blocks) - 1)
		if (sum(nr) != sums[nr])
			return false;
	return true;
}

static char *hotplug_output(const struct scenario *s)
{
	if (s->kind >= JOINS)
		return zone + OFFSET("zone.contiguous");
	return block(at) + s->bytes / 2;
}

const struct subject hotplug_subject = {
	.name = "hotplug",
	.path = "bmm_hotplug_path",
	.op = BMM_STAMP,
	.modes = modes,
	.setup = hotplug_setup,
	.enter = hotplug_enter,
	.reset = hotplug_reset,
	.call = hotplug_call,
	.keep = hotplug_keep,
	.right = hotplug_right,
	.output = hotplug_output,
};
