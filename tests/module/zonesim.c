// SPDX-License-Identifier: GPL-2.0-only
/*
 * module/hotplug_walk.c, for real, on zones that are made up: every answer is
 * compared with that of a walk over the whole zone.
 *
 *	zonesim SEED CASES PAGEBLOCK SUBSECTION
 *
 * Half of the cases are zones of any shape with any notion of what has changed.
 * The others come up as in the kernel: blocks join a zone and leave it, in any
 * order, with their struct pages on themselves or not, some fail halfway, and
 * devices take what is free of a section. Prints what it came to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../module/hotplug_walk.h"

#define SECTION	 32UL /* PFNs */
#define SECTIONS 24UL
#define PFNS	 (SECTION * SECTIONS)
#define ZONES	 3

enum owner {
	HOLE,
	FIRST_ZONE,
	DEVICE = FIRST_ZONE + ZONES,
	POISON, /* a struct page that has left its zone */
	OWNERS
};

struct zone {
	enum owner owner;
	unsigned long start, end;
	bool contiguous;
};

static unsigned char owners[PFNS];
static bool online[SECTIONS];
static struct zone zones[ZONES];
static unsigned long pageblock, subsection, chance, looks;

/* What the run came to. */
static struct {
	unsigned long cases, no, yes, unknown, wrong, looks;
} all;

static unsigned long random_to(unsigned long n)
{
	chance = chance * 6364136223846793005UL + 1442695040888963407UL;
	return (chance >> 33) % n;
}

static bool is_online(unsigned long pfn)
{
	return online[pfn / SECTION] && owners[pfn] != HOLE &&
	       owners[pfn] != DEVICE;
}

/* The kernel's question: the two ends of a pageblock. */
bool bmm_walk_whole(struct zone *zone, unsigned long start, unsigned long end)
{
	looks++;
	if (start >= end || end > PFNS) { /* a question never asked */
		all.wrong++;
		return false;
	}
	return owners[end - 1] != HOLE && is_online(start) &&
	       owners[start] == zone->owner && owners[end - 1] == owners[start];
}

static bool walk_all(struct zone *zone)
{
	unsigned long at = zone->start, next;

	for (; at < zone->end; at = next) {
		next = at / pageblock * pageblock + pageblock;
		if (!bmm_walk_whole(zone, at,
				    next < zone->end ? next : zone->end))
			return false;
	}
	return true;
}

static void judge(struct zone *zone, const struct bmm_walk_change *change)
{
	struct bmm_walk walk = {
		.start = zone->start,
		.end = zone->end,
		.pageblock = pageblock,
		.zone = zone,
	};
	enum bmm_walk_answer answer;
	bool truth;

	looks = 0;
	answer = bmm_walk_shortcut(&walk, change);
	if (looks > all.looks)
		all.looks = looks;
	truth = walk_all(zone);
	all.cases++;
	all.no += answer == BMM_WALK_NO;
	all.yes += answer == BMM_WALK_YES;
	all.unknown += answer == BMM_WALK_UNKNOWN;
	if (answer != BMM_WALK_UNKNOWN)
		all.wrong += truth != (answer == BMM_WALK_YES);
	if (truth)
		zone->contiguous = true;
}

/* A zone of any shape, cut anywhere, with holes, strangers and offline parts. */
static void any_shape(void)
{
	struct zone *zone = &zones[0];
	struct bmm_walk_change change = {};
	unsigned long n = random_to(6), from, len;

	memset(owners, FIRST_ZONE, sizeof(owners));
	memset(online, true, sizeof(online));
	zone->owner = FIRST_ZONE;
	zone->start = random_to(PFNS);
	zone->end = zone->start + random_to(PFNS - zone->start);
	while (n--) {
		from = random_to(PFNS);
		len = random_to(PFNS - from) / (1 + random_to(8));
		memset(owners + from, (int)random_to(OWNERS), len);
		online[random_to(SECTIONS)] = random_to(2);
	}
	change.start = random_to(PFNS + SECTION);
	change.end = change.start + random_to(3 * SECTION);
	judge(zone, &change);
}

/* As the kernel does when a range joins a zone. */
static void grow(struct zone *zone, unsigned long start, unsigned long end)
{
	struct bmm_walk_change change = { start, end, false };

	zone->contiguous = false;
	if (zone->start == zone->end)
		zone->start = zone->end = start;
	if (start < zone->start)
		zone->start = start;
	if (end > zone->end)
		zone->end = end;
	memset(owners + start, (int)zone->owner, end - start);
	judge(zone, &change);
}

static void set_online(unsigned long start, unsigned long end, bool on)
{
	for (; start < end; start += SECTION)
		online[start / SECTION] = on;
}

static bool is_of(const struct zone *zone, unsigned long pfn)
{
	return is_online(pfn) && owners[pfn] == zone->owner;
}

static void shrink_span(struct zone *zone, unsigned long start,
			unsigned long end)
{
	unsigned long pfn;

	if (zone->start == start) {
		for (pfn = end; pfn < zone->end; pfn += subsection)
			if (is_of(zone, pfn))
				break;
		zone->start = pfn;
		if (pfn >= zone->end)
			zone->start = zone->end = 0;
	} else if (zone->end == end) {
		for (pfn = start; pfn > zone->start; pfn -= subsection)
			if (is_of(zone, pfn - 1))
				break;
		zone->end = pfn;
		if (pfn <= zone->start)
			zone->start = zone->end = 0;
	}
}

/* As the kernel does when a range has left one. */
static void shrink(struct zone *zone, unsigned long start, unsigned long end)
{
	struct bmm_walk_change change = { start, end, zone->contiguous };

	memset(owners + start, POISON, end - start);
	zone->contiguous = false;
	shrink_span(zone, start, end);
	judge(zone, &change);
}

/* A block of one or two sections, with its struct pages on itself or not. */
static void plug(struct zone *zone, unsigned long start, unsigned long end,
		 bool own_memmap)
{
	unsigned long map = own_memmap ? start + pageblock : start;
	bool fails = !random_to(8);

	if (own_memmap)
		grow(zone, start, map);
	grow(zone, map, end);
	if (fails) {
		shrink(zone, map, end);
		if (own_memmap)
			shrink(zone, start, map);
		memset(owners + start, HOLE, end - start);
		return;
	}
	set_online(start, end, true);
}

static void unplug(struct zone *zone, unsigned long start, unsigned long end,
		   bool own_memmap)
{
	unsigned long map = own_memmap ? start + pageblock : start;

	set_online(start, end, false);
	shrink(zone, map, end);
	if (own_memmap)
		shrink(zone, start, map);
	memset(owners + start, HOLE, end - start);
}

/* What is free of a section goes to a device, or comes back. */
static void device(unsigned long section)
{
	unsigned long pfn, at = section * SECTION;
	unsigned char from = random_to(2) ? HOLE : DEVICE;

	for (pfn = at; pfn < at + SECTION; pfn += subsection)
		if (owners[pfn] == from)
			memset(owners + pfn, from == HOLE ? DEVICE : HOLE,
			       subsection);
}

static bool all_are(unsigned long start, unsigned long end, unsigned char owner)
{
	for (; start < end; start++)
		if (owners[start] != owner)
			return false;
	return true;
}

/* Memory that was there at boot: cut by the subsection, some of it missing. */
static void boot(void)
{
	unsigned long at = 0, len, i;

	memset(owners, HOLE, sizeof(owners));
	memset(online, false, sizeof(online));
	for (i = 0; i < ZONES; i++) {
		len = random_to(2 * SECTION / subsection) * subsection;
		zones[i] = (struct zone){ FIRST_ZONE + i, at, at + len, false };
		memset(owners + at, (int)zones[i].owner, len);
		set_online(at, at + len, true);
		if (!random_to(4))
			memset(owners + at, HOLE, len / 2);
		zones[i].contiguous = walk_all(&zones[i]);
		at += len + random_to(2) * SECTION;
		if (random_to(2))
			at = (at + SECTION - 1) / SECTION * SECTION;
	}
}

/* Some life after boot; whole blocks in a row are likely, as they are. */
static void life(unsigned long steps)
{
	unsigned long at = random_to(SECTIONS), blocks = 1 + random_to(2);
	bool own_memmap = pageblock < SECTION && random_to(2);
	bool up = random_to(2);
	struct zone *zone = &zones[random_to(ZONES)];
	unsigned long start, end;

	while (steps--) {
		if (!random_to(6)) {
			at = random_to(SECTIONS);
			zone = &zones[random_to(ZONES)];
		}
		if (!random_to(16))
			device(random_to(SECTIONS));
		start = at * SECTION;
		end = start + blocks * SECTION;
		at = (at + (up ? blocks : SECTIONS - blocks)) % SECTIONS;
		if (end > PFNS)
			continue;
		if (all_are(start, end, HOLE))
			plug(zone, start, end, own_memmap);
		else if (all_are(start, end, (unsigned char)zone->owner))
			unplug(zone, start, end, own_memmap);
	}
}

int main(int argc, char **argv)
{
	unsigned long cases;

	if (argc != 5)
		return 2;
	chance = strtoul(argv[1], NULL, 0);
	cases = strtoul(argv[2], NULL, 0);
	pageblock = strtoul(argv[3], NULL, 0);
	subsection = strtoul(argv[4], NULL, 0);
	while (all.cases < cases / 2)
		any_shape();
	while (all.cases < cases) {
		boot();
		life(200);
	}
	printf("%lu %lu %lu %lu %lu %lu\n", all.cases, all.no, all.yes,
	       all.unknown, all.wrong, all.looks);
	return 0;
}
