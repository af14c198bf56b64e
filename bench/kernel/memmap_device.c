// SPDX-License-Identifier: GPL-2.0-only
/* The devices of memmap: those of the lab, and cases of the fuzzer. */
#include <stdio.h>
#include <string.h>

#include "memmap.h"

#define HEADER 512ULL /* pages that a device reserves */

const char *const memmap_fields[FIELDS + 1] = {
	"type", "order", "from",     "pages", "altmap", "reserve", "free",
	"node", "early", "early_nr", "min",   "cold",	"odd",	   NULL,
};

const struct mode memmap_modes[] = { { "on", BMM_STAMP, "1" },
				     { "on", BMM_STAMP, "2t" },
				     { NULL, -1, NULL } };

uint64_t memmap_record, memmap_pages;

/* Whether the section of a PFN was present at boot. */
bool memmap_is_early(const uint64_t *v, uint64_t pfn)
{
	return (pfn - MEMMAP_START) / PAGES_SECTION - v[EARLY] < v[EARLY_NR];
}

/* How many struct pages of a unit the kernel writes, for correct GB/s. */
uint64_t memmap_unit_pages(const uint64_t *v, uint64_t pfn)
{
	uint64_t unit = 1ULL << v[ORDER], unshared = 2 * PAGE / memmap_record;

	if (v[HAS_ALTMAP] || unit <= unshared || memmap_is_early(v, pfn))
		return unit;
	return unshared;
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

/*
 * The scenario of a case; false: out of range. The device, and what may be
 * written past it, has struct pages.
 */
bool memmap_build(struct scenario *s, const uint64_t *v)
{
	uint64_t header_pages = v[HAS_ALTMAP] ? v[RESERVE] + v[FREE] : 0;
	uint64_t pfn;

	if (v[TYPE] >= TYPES || v[ORDER] > ORDER_1G ||
	    v[NODE] >= MEMMAP_NODES || v[FROM] > memmap_pages ||
	    v[PAGES] > memmap_pages - v[FROM] || v[RESERVE] > memmap_pages ||
	    v[FREE] > memmap_pages || v[EARLY] > memmap_pages ||
	    v[EARLY_NR] > memmap_pages || (v[ODD] && !may_be_odd(v)))
		return false;
	memcpy(s->value, v, sizeof(s->value));
	s->modes = memmap_modes;
	s->peers = memmap_peers(v[ORDER]);
	s->pages = header_pages < v[PAGES] ? v[PAGES] - header_pages : 0;
	s->from = MEMMAP_START + v[FROM] + v[PAGES] - s->pages;
	s->bytes = 0;
	for (pfn = s->from; pfn < s->from + s->pages; pfn += 1ULL << v[ORDER])
		s->bytes += memmap_unit_pages(v, pfn) * memmap_record;
	return true;
}

static uint64_t draw_below(uint64_t n)
{
	return n ? random_next() % n : 0;
}

/* Small as often as large. */
static uint64_t draw_size(uint64_t max)
{
	uint64_t bits = 64 - (uint64_t)__builtin_clzll(max | 1);

	return draw_below(1ULL << draw_below(bits + 1)) % (max + 1);
}

static bool one_in(uint64_t n)
{
	return !draw_below(n);
}

/* Most are devices that a driver might ask for, so that many are served. */
void memmap_draw(uint64_t *v)
{
	static const uint8_t orders[] = { 0, 0, ORDER_2M, ORDER_2M, ORDER_1G };
	uint64_t header_pages, max = memmap_pages / 4 * 3, align, unit;

	v[TYPE] = draw_below(TYPES);
	v[ORDER] = one_in(3) ? draw_below(ORDER_1G + 1) :
			       orders[draw_below(sizeof(orders))];
	unit = 1ULL << v[ORDER];
	v[HAS_ALTMAP] = one_in(2);
	v[RESERVE] = v[HAS_ALTMAP] ? draw_size(memmap_pages / 32) : 0;
	v[FREE] = v[HAS_ALTMAP] ? draw_size(memmap_pages / 32) : 0;
	header_pages = v[RESERVE] + v[FREE];
	v[PAGES] = header_pages + draw_size(max / unit) * unit;
	if (one_in(8))
		v[PAGES] -= draw_below(v[PAGES] % (2 * unit) + 1);
	if (v[PAGES] > memmap_pages)
		v[PAGES] = memmap_pages;
	align = unit > PAGES_2M ? unit : PAGES_2M;
	v[FROM] = draw_below(memmap_pages - v[PAGES] + 1);
	v[FROM] -= one_in(4) ? 0 : v[FROM] % align;
	v[NODE] = one_in(2) ? draw_below(MEMMAP_NODES) : 0;
	if (one_in(3)) {
		v[EARLY] = draw_size(memmap_pages / PAGES_SECTION);
		v[EARLY_NR] = draw_size(memmap_pages / PAGES_SECTION);
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

#define DEVICE(label, kind, behind, ...) \
	{ .name = (label), .type = (kind), .suffix = (behind), __VA_ARGS__ }
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
	DEVICE("hmm-private", PRIVATE, ""),
	DEVICE("pmem-devdax", GENERIC, "-align-4k", OWN, EXTRA),
	DEVICE("pmem-devdax", GENERIC, "-align-1g-map-mem", OF_1G, EXTRA),
	DEVICE("pmem-fsdax", FS_DAX, "-map-mem", EXTRA),
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
	uint64_t v[FIELDS_MAX] = { 0 }, unit = 1ULL << d->order,
		 header_pages = 0;

	if (memmap_pages <= d->shift + d->cut)
		return false;
	v[TYPE] = d->type;
	v[ORDER] = d->order;
	v[FROM] = d->shift;
	v[PAGES] = memmap_pages - d->shift - d->cut;
	v[HAS_ALTMAP] = d->altmap;
	if (d->altmap)
		header_pages = HEADER + v[PAGES] * memmap_record / PAGE;
	header_pages = (header_pages + v[FROM] + unit - 1) / unit * unit -
		       v[FROM];
	if (header_pages + unit > v[PAGES])
		return false;
	v[PAGES] -= (v[PAGES] - header_pages) % unit;
	v[RESERVE] = d->altmap ? HEADER : 0;
	v[FREE] = d->altmap ? header_pages - HEADER : 0;
	v[FROM] += d->altmap ? 0 : header_pages;
	v[PAGES] -= d->altmap ? 0 : header_pages;
	v[EARLY_NR] = d->early;
	v[COLD] = d->altmap; /* the others were just zeroed */
	*s = (struct scenario){ .repeat = 1, .extra = d->extra };
	snprintf(s->name, sizeof(s->name), "%s-%s%s", d->name, size, d->suffix);
	return memmap_build(s, v);
}

/* Lists the devices of a size; returns how many. */
unsigned int memmap_devices(struct scenario *list, uint64_t size)
{
	char label[16];
	unsigned int i, nr = 0;

	memmap_record = SIZE("page");
	memmap_pages = size / PAGE / PAGES_SECTION * PAGES_SECTION;
	snprintf(label, sizeof(label), "%llug",
		 (unsigned long long)(size >> 30));
	for (i = 0; i < DEVICES; i++)
		nr += list_device(&list[nr], &devices[i], label);
	return nr;
}
