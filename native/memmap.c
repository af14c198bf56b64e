// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: memmap_init_zone_device() on a device whose struct pages lie on
 * itself (map=dev), with the lab's sizes and orders.
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

#define START	 0x100000ULL /* the device's first PFN, at 4 GiB */
#define HEADER	 512ULL	     /* pages that the device keeps for itself */
#define ALTMAP	 1	     /* PGMAP_ALTMAP_VALID */
#define SEED	 0x9e3779b97f4a7c15ULL
#define FSDAX	 0
#define DEVDAX	 1
#define ORDER_2M 9
#define ORDER_1G 18

typedef void init_fn(void *zone, uint64_t from, uint64_t pages, void *pgmap);

static char *pages_at;	/* struct pages of the device */
static uint64_t *sums;	/* of each, as the kernel made it */
static uint64_t record; /* bytes of one */
static void *zone, *pgmap;
static uint64_t device_pages;
static init_fn *init_pages;
static struct bmm_image image;

/* What a kind of stores writes as the limit: a struct page of the kernel's. */
const struct bmm_image *pages_image(void)
{
	return &image;
}

static void add(struct scenario *s, const char *name, const char *size,
		const char *suffix, unsigned int order, unsigned int kind)
{
	static const struct mode on[] = { { "on", 0 }, { NULL, -1 } };
	uint64_t unit = 1ULL << order;
	uint64_t own = HEADER + device_pages * record / PAGE;

	own = (own + unit - 1) / unit * unit;
	snprintf(s->name, sizeof(s->name), "%s-%s%s", name, size, suffix);
	s->order = order;
	s->kind = kind;
	s->from = START + own;
	s->pages = own < device_pages ? (device_pages - own) / unit * unit : 0;
	s->bytes = s->pages * record;
	s->repeat = 1;
	s->modes = on;
}

static unsigned int memmap_setup(struct scenario *list, uint64_t size)
{
	char named[16];
	char *pgdat = need(SIZE("pglist_data"));
	unsigned int i, nr = 0;

	record = SIZE("page");
	device_pages = size / PAGE / PAGES_SECTION * PAGES_SECTION;
	snprintf(named, sizeof(named), "%llug",
		 (unsigned long long)(size >> 30));
	add(&list[0], "pmem-fsdax", named, "", 0, FSDAX);
	add(&list[1], "pmem-devdax", named, "", ORDER_2M, DEVDAX);
	add(&list[2], "pmem-devdax", named, "-align-1g", ORDER_1G, DEVDAX);
	for (i = 0; i < 3; i++)
		if (list[i].pages)
			list[nr++] = list[i];
	init_pages = (init_fn *)symbol("memmap_init_zone_device");
	state_sections(START, device_pages, false);
	pages_at = state_pages(START, device_pages);
	sums = (uint64_t *)memory(device_pages * sizeof(*sums));
	zone = pgdat + OFFSET("pglist_data.node_zones") +
	       ENUM("ZONE_DEVICE") * SIZE("zone");
	AT(char *, zone, OFFSET("zone.zone_pgdat")) = pgdat;
	pgmap = need(SIZE("dev_pagemap"));
	return nr;
}

static void memmap_enter(const struct scenario *s)
{
	char *altmap = (char *)pgmap + OFFSET("dev_pagemap.altmap");

	AT(uint32_t, pgmap, OFFSET("dev_pagemap.type")) =
		(uint32_t)(s->kind == FSDAX ? ENUM("MEMORY_DEVICE_FS_DAX") :
					      ENUM("MEMORY_DEVICE_GENERIC"));
	AT(uint32_t, pgmap, OFFSET("dev_pagemap.flags")) = ALTMAP;
	AT(uint64_t, pgmap, OFFSET("dev_pagemap.vmemmap_shift")) = s->order;
	AT(uint32_t, pgmap, OFFSET("dev_pagemap.nr_range")) = 1;
	AT(uint64_t, altmap, OFFSET("vmem_altmap.base_pfn")) = START;
	AT(uint64_t, altmap, OFFSET("vmem_altmap.reserve")) = HEADER;
	AT(uint64_t, altmap, OFFSET("vmem_altmap.free")) = s->from - START -
							   HEADER;
}

static char *first(const struct scenario *s)
{
	return pages_at + (s->from - START) * record;
}

static void memmap_reset(const struct scenario *s)
{
	memset(first(s), POISON, s->bytes);
}

static void memmap_call(const struct scenario *s)
{
	init_pages(zone, START, s->from - START + s->pages, pgmap);
}

static void memmap_limit(const struct scenario *s, const struct arm *arm)
{
	struct variant v = { .op = BMM_STAMP, .limit = arm->limit };

	limit_write(&v, first(s), NULL, s->bytes);
}

/* No two struct pages that differ in one word have the same. */
static uint64_t sum(const uint64_t *page)
{
	uint64_t made = SEED;
	size_t i;

	for (i = 0; i < record / sizeof(*page); i++) {
		made = (made ^ page[i]) * SEED;
		made ^= made >> 32;
	}
	return made;
}

static void memmap_keep(const struct scenario *s)
{
	const char *page = first(s);
	uint64_t i;

	bmm_image_init(&image, page, page + record, record);
	for (i = 0; i < s->pages; i++, page += record)
		sums[i] = sum((const uint64_t *)page);
}

static bool memmap_right(const struct scenario *s)
{
	const char *page = first(s);
	uint64_t i;

	for (i = 0; i < s->pages; i++, page += record)
		if (sum((const uint64_t *)page) != sums[i]) {
			fprintf(stderr,
				"%s: struct page %llu is not the kernel's\n",
				s->name, (unsigned long long)i);
			return false;
		}
	return true;
}

static char *memmap_output(const struct scenario *s)
{
	return first(s) + s->bytes / 2;
}

const struct family memmap_family = {
	.name = "memmap",
	.path = "bmm_memmap",
	.op = BMM_STAMP,
	.picks = 1,
	.setup = memmap_setup,
	.enter = memmap_enter,
	.reset = memmap_reset,
	.call = memmap_call,
	.limit = memmap_limit,
	.keep = memmap_keep,
	.right = memmap_right,
	.output = memmap_output,
};
