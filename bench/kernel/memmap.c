// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: memmap_init_zone_device() on devices of all kinds. Compares all
 * struct pages of the device, some on both sides, and the pageblock flags.
 */
#include <stdio.h>
#include <string.h>

#include "memmap.h"

#define ROOM	 (1ULL << 18) /* after a device, for a partial unit */
#define GUARD_NR 64ULL	      /* struct pages on each side */
#define ALTMAP	 1	      /* PGMAP_ALTMAP_VALID */

static const char types[][32] LOADER_REQUEST = {
	"enum MEMORY_DEVICE_FS_DAX",	 "enum MEMORY_DEVICE_GENERIC",
	"enum MEMORY_DEVICE_PRIVATE",	 "enum MEMORY_DEVICE_COHERENT",
	"enum MEMORY_DEVICE_PCI_P2PDMA",
};

typedef void init_fn(void *zone, uint64_t from, uint64_t pages, void *pgmap);

static char *pages_at; /* struct page of PFN MEMMAP_START */
static uint64_t *sums; /* of each struct page, as the kernel made it */
static char *flags;    /* of pageblocks, as the kernel made them */
static PER_KERNEL char *zone, *pgdat;
static char *pgmap; /* struct pages point to it */
static PER_KERNEL uint64_t *min_pages, min_pages_own;
static PER_KERNEL init_fn *init_pages;
static struct bmm_image image;
static char *odd_page; /* that the kernel makes differ, or NULL */
static PER_KERNEL void (*pageblock_init)(char *page, int type, bool isolate);

/* Has the stores of a limit write what the kernel wrote here. */
void pages_keep(const char *page, size_t record)
{
	bmm_image_init(&image, page, page + record, record);
}

/* What the stores of a limit write: one of the kernel's struct pages. */
const struct bmm_image *pages_image(void)
{
	if (!image.size)
		fatal("no struct page is kept for a limit to write");
	return &image;
}

static unsigned int memmap_setup(struct scenario *list, uint64_t size)
{
	unsigned int nr = memmap_devices(list, size);

	init_pages = (init_fn *)symbol("memmap_init_zone_device");
	state_sections(MEMMAP_START, memmap_pages + ROOM, false);
	pages_at = state_pages(MEMMAP_START - ROOM, memmap_pages + 3 * ROOM) +
		   ROOM * memmap_record;
	sums = (uint64_t *)map_memory((memmap_pages + 2 * ROOM) * sizeof(*sums));
	flags = map_memory((memmap_pages + ROOM) / PAGES_SECTION * STATE_FLAGS);
	pgdat = require_memory(SIZE("pglist_data"));
	zone = pgdat + OFFSET("pglist_data.node_zones") +
	       ENUM("ZONE_DEVICE") * SIZE("zone");
	AT(char *, zone, OFFSET("zone.zone_pgdat")) = pgdat;
	pgmap = map_memory(PAGE);
	min_pages = (uint64_t *)symbol_or_null("memmap_min_pages", 'm');
	min_pages_own = min_pages ? *min_pages : 0;
	return nr;
}

static uint64_t sections(const struct scenario *s)
{
	return (s->value[FROM] + s->value[PAGES]) / PAGES_SECTION -
	       s->value[FROM] / PAGES_SECTION + 1;
}

static char *first(const struct scenario *s)
{
	return pages_at + (s->from - MEMMAP_START) * memmap_record;
}

/*
 * Simulates a kernel whose last unit differs: its function for pageblocks,
 * called last, also changes a word, unless the module is the caller.
 */
static void pageblock_odd(char *page, int type, bool isolate)
{
	uint64_t caller = (uint64_t)__builtin_return_address(0);

	pageblock_init(page, type, isolate);
	if (odd_page && page <= odd_page &&
	    odd_page < page + PAGES_2M * memmap_record &&
	    caller - fact("module") >= fact("module size"))
		AT(uint64_t, odd_page, memmap_record - sizeof(uint64_t)) = ~0ULL;
}

static const char *pageblock_name(void)
{
	static const char *const names[] = { "init_pageblock_migratetype",
					     "set_pageblock_migratetype" };

	return names[!symbol_or_null(names[0], 'k')];
}

/* The kernel's function that sets a pageblock's type. */
char *memmap_pageblock(void)
{
	return symbol(pageblock_name());
}

static void pageblock_divert(void)
{
	if (!pageblock_init)
		pageblock_init = (void *)divert_keep(pageblock_name(),
						     pageblock_odd);
}

static void memmap_enter(const struct scenario *s)
{
	char *altmap = pgmap + OFFSET("dev_pagemap.altmap");
	const uint64_t *v = s->value;
	uint64_t nr, pfn;

	if (v[ODD])
		pageblock_divert();
	memset(pgmap, 0, PAGE);
	AT(uint32_t, pgmap,
	   OFFSET("dev_pagemap.type")) = (uint32_t)fact(types[v[TYPE]]);
	AT(uint32_t, pgmap,
	   OFFSET("dev_pagemap.flags")) = v[HAS_ALTMAP] ? ALTMAP : 0;
	AT(uint64_t, pgmap, OFFSET("dev_pagemap.vmemmap_shift")) = v[ORDER];
	AT(uint32_t, pgmap, OFFSET("dev_pagemap.nr_range")) = 1;
	AT(uint64_t, altmap, OFFSET("vmem_altmap.base_pfn")) = MEMMAP_START +
							       v[FROM];
	AT(uint64_t, altmap, OFFSET("vmem_altmap.reserve")) = v[RESERVE];
	AT(uint64_t, altmap, OFFSET("vmem_altmap.free")) = v[FREE];
	AT(int, pgdat, OFFSET("pglist_data.node_id")) = (int)v[NODE];
	AT(int, zone, OFFSET("zone.node")) = (int)v[NODE];
	for (nr = 0; nr < sections(s); nr++) {
		pfn = MEMMAP_START + v[FROM] + nr * PAGES_SECTION;
		state_early(pfn, memmap_is_early(v, pfn));
	}
}

/* The struct pages to compare, starting with some before the device. */
static char *window(const struct scenario *s, uint64_t *nr)
{
	uint64_t unit = 1ULL << s->value[ORDER];
	uint64_t end = s->from + (s->pages + unit - 1) / unit * unit;
	uint64_t from = MEMMAP_START + s->value[FROM];

	*nr = end - from + 2 * GUARD_NR;
	return pages_at + (from - MEMMAP_START) * memmap_record -
	       GUARD_NR * memmap_record;
}

/* The last struct page that exists. */
static char *last(const struct scenario *s)
{
	uint64_t unit = (s->pages - 1) >> s->value[ORDER] << s->value[ORDER];

	return first(s) + (unit + memmap_unit_pages(s->value, s->from + unit) -
			   1) * memmap_record;
}

/* The flags of all pageblocks of a section. */
static char *flags_of(const struct scenario *s, uint64_t nr)
{
	return state_flags(MEMMAP_START + s->value[FROM] + nr * PAGES_SECTION);
}

static void memmap_reset(const struct scenario *s)
{
	uint64_t nr, i;
	char *page = window(s, &nr);

	memset(page, POISON, nr * memmap_record);
	if (s->value[COLD])
		evict(page, nr * memmap_record);
	for (i = 0; i < sections(s); i++)
		memset(flags_of(s, i), 0x22, STATE_FLAGS);
	odd_page = s->value[ODD] ? last(s) : NULL;
}

static void memmap_call(const struct scenario *s, const struct variant *variant)
{
	const uint64_t *v = s->value;

	if (variant && variant->peer)
		return memmap_template(first(s), s, variant->peer);
	if (variant)
		return limit_write(variant->limit, BMM_STAMP, first(s), NULL,
				   s->bytes);
	if (min_pages)
		*min_pages = v[SMALL] ? v[SMALL] : min_pages_own;
	init_pages(zone, MEMMAP_START + v[FROM], v[PAGES], pgmap);
}

static void memmap_keep(const struct scenario *s)
{
	uint64_t nr, i;
	const char *page = window(s, &nr);

	pages_keep(first(s), memmap_record);
	for (i = 0; i < nr; i++, page += memmap_record)
		sums[i] = checksum(page, memmap_record);
	for (i = 0; i < sections(s); i++)
		memcpy(flags + i * STATE_FLAGS, flags_of(s, i), STATE_FLAGS);
}

static bool memmap_right(const struct scenario *s)
{
	uint64_t nr, i;
	const char *page = window(s, &nr);

	for (i = 0; i < nr; i++, page += memmap_record)
		if (checksum(page, memmap_record) != sums[i]) {
			fprintf(stderr,
				"%s: struct page %lld is not the kernel's\n",
				s->name,
				(long long)((page - first(s)) /
					    (long)memmap_record));
			return false;
		}
	for (i = 0; i < sections(s); i++)
		if (memcmp(flags + i * STATE_FLAGS, flags_of(s, i),
			   STATE_FLAGS)) {
			fprintf(stderr,
				"%s: pageblock flags of section %llu are not the kernel's\n",
				s->name, (unsigned long long)i);
			return false;
		}
	return true;
}

static char *memmap_output(const struct scenario *s)
{
	return first(s) + (s->pages - (s->pages > 1)) / 2 * memmap_record;
}

const struct subject memmap_subject = {
	.name = "memmap",
	.path = "bmm_memmap_path",
	.op = BMM_STAMP,
	.modes = memmap_modes,
	.ops = 1 << BMM_STAMP,
	.setup = memmap_setup,
	.enter = memmap_enter,
	.reset = memmap_reset,
	.call = memmap_call,
	.keep = memmap_keep,
	.right = memmap_right,
	.output = memmap_output,
	.fields = memmap_fields,
	.draw = memmap_draw,
	.build = memmap_build,
};
