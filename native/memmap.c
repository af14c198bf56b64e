// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap: memmap_init_zone_device() on devices of all kinds. Compares all
 * struct pages of the device, some on both sides, and the pageblock flags.
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

#define START	 0x100000ULL  /* the first PFN, at 4 GiB */
#define HEADER	 512ULL	      /* pages that a device reserves */
#define ROOM	 (1ULL << 18) /* after it, for a partial unit */
#define NODES	 64ULL
#define GUARD_NR 64ULL /* struct pages on each side */
#define ALTMAP	 1     /* PGMAP_ALTMAP_VALID */
#define ORDER_2M 9
#define ORDER_1G 18
#define PAGES_2M (1ULL << ORDER_2M)

/* Defines a device; a case of the fuzzer gives all of these. */
enum field {
	TYPE,	    /* index of types[] */
	ORDER,	    /* vmemmap_shift */
	FROM,	    /* first PFN, counted from START */
	PAGES,	    /* PFNs, the device's own included */
	HAS_ALTMAP, /* whether struct pages are on the device (map=dev) */
	RESERVE,    /* PFNs for the driver */
	FREE,	    /* PFNs for struct pages */
	NODE,	    /* of the zone */
	EARLY,	    /* first section present at boot, from START */
	EARLY_NR,   /* how many are present at boot */
	SMALL,	    /* memmap_min_pages; 0: the module's default */
	COLD,	    /* whether no cache has the struct pages */
	ODD,	    /* 1: the kernel makes the last struct page differ */
	FIELDS,
};

static const char *const fields[FIELDS + 1] = {
	"type", "order", "from",     "pages", "altmap", "reserve", "free",
	"node", "early", "early_nr", "min",   "cold",	"odd",	   NULL,
};

static const char *const types[] = {
	"enum MEMORY_DEVICE_FS_DAX",	 "enum MEMORY_DEVICE_GENERIC",
	"enum MEMORY_DEVICE_PRIVATE",	 "enum MEMORY_DEVICE_COHERENT",
	"enum MEMORY_DEVICE_PCI_P2PDMA",
};

enum type {
	FS_DAX,
	GENERIC,
	PRIVATE,
	TYPES = 5
};

typedef void init_fn(void *zone, uint64_t from, uint64_t pages, void *pgmap);

static char *pages_at;	/* struct page of PFN START */
static uint64_t *sums;	/* of each struct page, as the kernel made it */
static char *flags;	/* of pageblocks, as the kernel made them */
static uint64_t record; /* bytes of a struct page */
static char *zone, *pgmap, *pgdat;
static uint64_t device_pages;
static uint64_t *min_pages, min_pages_own;
static init_fn *init_pages;
static struct bmm_image image;
static char *odd_page; /* that the kernel makes differ, or NULL */
static void (*pageblock_init)(char *page, int type, bool isolate);

/* What the stores of a limit write: one of the kernel's struct pages. */
const struct bmm_image *pages_image(void)
{
	return &image;
}

static bool is_early(const uint64_t *v, uint64_t pfn)
{
	return (pfn - START) / PAGES_SECTION - v[EARLY] < v[EARLY_NR];
}

/* How many struct pages of a unit the kernel writes, for correct GB/s. */
static uint64_t unit_pages(const uint64_t *v, uint64_t pfn)
{
	uint64_t unit = 1ULL << v[ORDER], kept = 2 * PAGE / record;

	if (v[HAS_ALTMAP] || unit <= kept || is_early(v, pfn))
		return unit;
	return kept;
}

/*
 * The last unit can be odd if the kernel can build it alone, and it starts a
 * pageblock.
 */
static bool may_be_odd(const uint64_t *v)
{
	return !v[HAS_ALTMAP] && v[ORDER] >= ORDER_2M && v[PAGES] &&
	       !(v[FROM] % PAGES_2M);
}

static const struct mode modes[] = { { "on", 0, "1" },
				     { "on", 0, "2t" },
				     { "on", 0, "auto" },
				     { NULL, -1, NULL } };

/* Checks that the device, and what may be written past it, has struct pages. */
static bool memmap_build(struct scenario *s, const uint64_t *v)
{
	uint64_t own = v[HAS_ALTMAP] ? v[RESERVE] + v[FREE] : 0;
	uint64_t pfn;

	if (v[TYPE] >= TYPES || v[ORDER] > ORDER_1G || v[NODE] >= NODES ||
	    v[FROM] > device_pages || v[PAGES] > device_pages - v[FROM] ||
	    v[RESERVE] > device_pages || v[FREE] > device_pages ||
	    v[EARLY] > device_pages || v[EARLY_NR] > device_pages ||
	    (v[ODD] && !may_be_odd(v)))
		return false;
	memcpy(s->value, v, sizeof(s->value));
	s->modes = modes;
	s->from = START + v[FROM] + own;
	s->pages = own < v[PAGES] ? v[PAGES] - own : 0;
	s->bytes = 0;
	for (pfn = s->from; pfn < s->from + s->pages; pfn += 1ULL << v[ORDER])
		s->bytes += unit_pages(v, pfn) * record;
	return true;
}

static uint64_t draw_below(uint64_t n)
{
	return n ? random_next() % n : 0;
}

/* Small as often as large. */
static uint64_t draw_size(uint64_t most)
{
	uint64_t bits = 64 - (uint64_t)__builtin_clzll(most | 1);

	return draw_below(1ULL << draw_below(bits + 1)) % (most + 1);
}

static bool one_in(uint64_t n)
{
	return !draw_below(n);
}

/* Most are devices that a driver might ask for, so that many are served. */
static void memmap_draw(uint64_t *v)
{
	static const uint8_t orders[] = { 0, 0, ORDER_2M, ORDER_2M, ORDER_1G };
	uint64_t own, most = device_pages / 4 * 3, align, unit;

	v[TYPE] = draw_below(TYPES);
	v[ORDER] = one_in(3) ? draw_below(ORDER_1G + 1) :
			       orders[draw_below(sizeof(orders))];
	unit = 1ULL << v[ORDER];
	v[HAS_ALTMAP] = one_in(2);
	v[RESERVE] = v[HAS_ALTMAP] ? draw_size(device_pages / 32) : 0;
	v[FREE] = v[HAS_ALTMAP] ? draw_size(device_pages / 32) : 0;
	own = v[RESERVE] + v[FREE];
	v[PAGES] = own + draw_size(most / unit) * unit;
	if (one_in(8))
		v[PAGES] -= draw_below(v[PAGES] % (2 * unit) + 1);
	if (v[PAGES] > device_pages)
		v[PAGES] = device_pages;
	align = unit > PAGES_2M ? unit : PAGES_2M;
	v[FROM] = draw_below(device_pages - v[PAGES] + 1);
	v[FROM] -= one_in(4) ? 0 : v[FROM] % align;
	v[NODE] = one_in(2) ? draw_below(NODES) : 0;
	if (one_in(3)) {
		v[EARLY] = draw_size(device_pages / PAGES_SECTION);
		v[EARLY_NR] = draw_size(device_pages / PAGES_SECTION);
	}
	v[SMALL] = one_in(2);
	v[ODD] = may_be_odd(v) && one_in(8);
}

/*
 * A device of the lab, or one like it. All start at the same PFN; one that
 * holds its own struct pages has whole units after them.
 */
struct device {
	const char *name, *suffix;
	enum type type;
	unsigned int order;
	bool altmap;
	bool extra;
	unsigned int shift; /* PFNs that it starts later */
	unsigned int cut;   /* and ends earlier */
	unsigned int early; /* sections present at boot */
};

#define DEVICE(named, kind, behind, ...) \
	{ .name = (named), .type = (kind), .suffix = (behind), __VA_ARGS__ }
#define OWN   .altmap = true
#define EXTRA .extra = true
#define OF_2M .order = ORDER_2M
#define OF_1G .order = ORDER_1G
#define LATER .shift = PAGES_2M

static const struct device devices[] = {
	DEVICE("pmem-fsdax", FS_DAX, "", OWN),
	DEVICE("pmem-devdax", GENERIC, "", OWN, OF_2M),
	DEVICE("pmem-devdax", GENERIC, "-align-1g", OWN, OF_1G),
	DEVICE("pmem-devdax", GENERIC, "-map-mem", OF_2M),
	DEVICE("pmem-devdax", GENERIC, "-align-4k", OWN, EXTRA),
	DEVICE("pmem-devdax", GENERIC, "-align-1g-map-mem", OF_1G, EXTRA),
	DEVICE("pmem-fsdax", FS_DAX, "-map-mem", EXTRA),
	DEVICE("hmm-private", PRIVATE, "", EXTRA),
	/* not aligned to sections; fsdax not to pageblocks either */
	DEVICE("pmem-fsdax", FS_DAX, "-odd", OWN, EXTRA, LATER, .cut = 77),
	DEVICE("pmem-devdax", GENERIC, "-odd", OWN, OF_2M, EXTRA, LATER,
	       .cut = 7 * PAGES_2M),
	/* the first section belongs to boot memory */
	DEVICE("pmem-fsdax", FS_DAX, "-early", OWN, EXTRA, LATER, .early = 1),
	DEVICE("pmem-devdax", GENERIC, "-early-map-mem", OF_2M, EXTRA, LATER,
	       .early = 1),
};

#define DEVICES (sizeof(devices) / sizeof(devices[0]))

static bool list_device(struct scenario *s, const struct device *d,
			const char *size)
{
	uint64_t v[FIELDS_MAX] = { 0 }, unit = 1ULL << d->order, own = 0;

	if (device_pages <= d->shift + d->cut)
		return false;
	v[TYPE] = d->type;
	v[ORDER] = d->order;
	v[FROM] = d->shift;
	v[PAGES] = device_pages - d->shift - d->cut;
	v[HAS_ALTMAP] = d->altmap;
	if (d->altmap)
		own = HEADER + v[PAGES] * record / PAGE;
	own = (own + v[FROM] + unit - 1) / unit * unit - v[FROM];
	if (own + unit > v[PAGES])
		return false;
	v[PAGES] -= (v[PAGES] - own) % unit;
	v[RESERVE] = d->altmap ? HEADER : 0;
	v[FREE] = d->altmap ? own - HEADER : 0;
	v[FROM] += d->altmap ? 0 : own;
	v[PAGES] -= d->altmap ? 0 : own;
	v[EARLY_NR] = d->early;
	v[COLD] = d->altmap; /* the others were just zeroed */
	*s = (struct scenario){ .repeat = 1, .extra = d->extra };
	snprintf(s->name, sizeof(s->name), "%s-%s%s", d->name, size, d->suffix);
	return memmap_build(s, v);
}

static unsigned int memmap_setup(struct scenario *list, uint64_t size)
{
	char named[16];
	unsigned int i, nr = 0;

	record = SIZE("page");
	device_pages = size / PAGE / PAGES_SECTION * PAGES_SECTION;
	snprintf(named, sizeof(named), "%llug",
		 (unsigned long long)(size >> 30));
	for (i = 0; i < DEVICES; i++)
		nr += list_device(&list[nr], &devices[i], named);
	init_pages = (init_fn *)symbol("memmap_init_zone_device");
	state_sections(START, device_pages + ROOM, false);
	pages_at = state_pages(START - ROOM, device_pages + 3 * ROOM) +
		   ROOM * record;
	sums = (uint64_t *)memory((device_pages + 2 * ROOM) * sizeof(*sums));
	flags = memory((device_pages + ROOM) / PAGES_SECTION * STATE_FLAGS);
	pgdat = need(SIZE("pglist_data"));
	state_nodes(NODES);
	zone = pgdat + OFFSET("pglist_data.node_zones") +
	       ENUM("ZONE_DEVICE") * SIZE("zone");
	AT(char *, zone, OFFSET("zone.zone_pgdat")) = pgdat;
	pgmap = need(SIZE("dev_pagemap"));
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
	return pages_at + (s->from - START) * record;
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
	    odd_page < page + PAGES_2M * record &&
	    caller - fact("module") >= fact("module size"))
		AT(uint64_t, odd_page, record - sizeof(uint64_t)) = ~0ULL;
}

static void pageblock_divert(void)
{
	static const char *const names[] = { "init_pageblock_migratetype",
					     "set_pageblock_migratetype" };
	const char *name = names[!symbol_or_null(names[0], 'k')];

	if (pageblock_init)
		return;
	pageblock_init = (void *)divert_keep(name, pageblock_odd);
}

static void memmap_enter(const struct scenario *s)
{
	char *altmap = pgmap + OFFSET("dev_pagemap.altmap");
	const uint64_t *v = s->value;
	uint64_t nr, pfn;

	if (v[ODD])
		pageblock_divert();
	AT(uint32_t, pgmap,
	   OFFSET("dev_pagemap.type")) = (uint32_t)fact(types[v[TYPE]]);
	AT(uint32_t, pgmap,
	   OFFSET("dev_pagemap.flags")) = v[HAS_ALTMAP] ? ALTMAP : 0;
	AT(uint64_t, pgmap, OFFSET("dev_pagemap.vmemmap_shift")) = v[ORDER];
	AT(uint32_t, pgmap, OFFSET("dev_pagemap.nr_range")) = 1;
	AT(uint64_t, altmap, OFFSET("vmem_altmap.base_pfn")) = START + v[FROM];
	AT(uint64_t, altmap, OFFSET("vmem_altmap.reserve")) = v[RESERVE];
	AT(uint64_t, altmap, OFFSET("vmem_altmap.free")) = v[FREE];
	AT(int, pgdat, OFFSET("pglist_data.node_id")) = (int)v[NODE];
	AT(int, zone, OFFSET("zone.node")) = (int)v[NODE];
	for (nr = 0; nr < sections(s); nr++) {
		pfn = START + v[FROM] + nr * PAGES_SECTION;
		state_early(pfn, is_early(v, pfn));
	}
}

/* The struct pages to compare, starting with some before the device. */
static char *window(const struct scenario *s, uint64_t *nr)
{
	uint64_t unit = 1ULL << s->value[ORDER];
	uint64_t end = s->from + (s->pages + unit - 1) / unit * unit;
	uint64_t from = START + s->value[FROM];

	*nr = end - from + 2 * GUARD_NR;
	return pages_at + (from - START) * record - GUARD_NR * record;
}

/* The last struct page that exists. */
static char *last(const struct scenario *s)
{
	uint64_t unit = (s->pages - 1) >> s->value[ORDER] << s->value[ORDER];

	return first(s) +
	       (unit + unit_pages(s->value, s->from + unit) - 1) * record;
}

/* The flags of all pageblocks of a section. */
static char *flags_of(const struct scenario *s, uint64_t nr)
{
	return state_flags(START + s->value[FROM] + nr * PAGES_SECTION);
}

/* Flushes caches only if they could hold that much. */
static void poison(char *page, uint64_t bytes, bool cold)
{
	uint64_t i;

	memset(page, POISON, bytes);
	if (cold && bytes < 4 * buffer_cache_bytes())
		for (i = 0; i < bytes; i += LINE)
			__builtin_ia32_clflush(page + i);
}

static void memmap_reset(const struct scenario *s)
{
	uint64_t nr, i;
	char *page = window(s, &nr);

	poison(page, nr * record, s->value[COLD]);
	for (i = 0; i < sections(s); i++)
		memset(flags_of(s, i), 0x22, STATE_FLAGS);
	odd_page = s->value[ODD] ? last(s) : NULL;
}

static void memmap_call(const struct scenario *s)
{
	const uint64_t *v = s->value;

	if (min_pages)
		*min_pages = v[SMALL] ? v[SMALL] : min_pages_own;
	init_pages(zone, START + v[FROM], v[PAGES], pgmap);
}

static void memmap_limit(const struct scenario *s, const struct arm *arm)
{
	struct variant v = { .op = BMM_STAMP, .limit = arm->limit };

	limit_write(&v, first(s), NULL, s->bytes);
}

static void memmap_keep(const struct scenario *s)
{
	uint64_t nr, i;
	const char *page = window(s, &nr), *one = first(s);

	bmm_image_init(&image, one, one + record, record);
	for (i = 0; i < nr; i++, page += record)
		sums[i] = checksum(page, record);
	for (i = 0; i < sections(s); i++)
		memcpy(flags + i * STATE_FLAGS, flags_of(s, i), STATE_FLAGS);
}

static bool memmap_right(const struct scenario *s)
{
	uint64_t nr, i;
	const char *page = window(s, &nr);

	for (i = 0; i < nr; i++, page += record)
		if (checksum(page, record) != sums[i]) {
			fprintf(stderr,
				"%s: struct page %lld is not the kernel's\n",
				s->name,
				(long long)((page - first(s)) / (long)record));
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
	return first(s) + (s->pages - (s->pages > 1)) / 2 * record;
}

const struct family memmap_family = {
	.name = "memmap",
	.path = "bmm_memmap",
	.op = BMM_STAMP,
	.modes = modes,
	.picks = 1,
	.setup = memmap_setup,
	.enter = memmap_enter,
	.reset = memmap_reset,
	.call = memmap_call,
	.limit = memmap_limit,
	.keep = memmap_keep,
	.right = memmap_right,
	.output = memmap_output,
	.fields = fields,
	.draw = memmap_draw,
	.build = memmap_build,
};
