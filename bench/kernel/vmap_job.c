// SPDX-License-Identifier: GPL-2.0-only
/* What is mapped: the scenarios of vmap, and cases of the fuzzer. */
#include <stdio.h>
#include <string.h>

#include "vmap.h"

#define ANY_SIZE    63 /* as in ioremap(): any size of entry */
#define BLOCK_SHIFT 21

const char *const vmap_fields[FIELDS + 1] = {
	"entry", "seed",   "at",   "pages", "order",	"missing",
	"odd",	 "odd_at", "prot", "shift", "physical", NULL,
};

/* PAGE_KERNEL, RO, executable, WC, WT, not present, none. */
const uint64_t vmap_prots[VMAP_PROTS] = {
	VMAP_KERNEL,	    0x8000000000000121, 0x163, 0x800000000000016b,
	0x80000000000001fb, 0x8000000000000162, 0,
};

/* Where there is no room for blocks, from the second on. */
const struct mode vmap_modes[] = { { "block", -1, NULL },
				   { "pte", -1, NULL },
				   { NULL, -1, NULL } };

/* The scenarios: pages in all, pages per call, distance between calls. */
static const struct {
	const char *name;
	enum shape shape;
	bool block; /* there is room for blocks */
	uint64_t pages, step;
	uint64_t value[FIELDS];
} jobs[] = {
#define EACH(nr) .value[PAGES] = (nr)
#define WHOLE	 .pages = VMAP_ARRAY, EACH(VMAP_ARRAY)
#define EMPTY	 .value[MISSING] = ALL_MISSING
	{ "vmap-100m-order0", RUNS, WHOLE },
	{ "vmap-100m-order0-far", FAR, WHOLE },
	{ "vmap-100m-order4", RUNS, WHOLE, .value[ORDER] = 4 },
	{ "vmap-100m-order8", RUNS, WHOLE, .value[ORDER] = 8 },
	{ "vmap-100m-order9", RUNS, WHOLE, .value[ORDER] = 9 },
	{ "vmap-100m-mixed", MIXED, WHOLE },
	{ "vmap-100m-order8-adjacent", ADJACENT, true, WHOLE, EMPTY,
	  .value[SHIFT] = BLOCK_SHIFT },
	{ "vmap-100m-order9-empty", RUNS, true, WHOLE, EMPTY, .value[ORDER] = 9,
	  .value[SHIFT] = BLOCK_SHIFT },
	{ "vmap-256k-order0", RUNS, .pages = VMAP_ARRAY, EACH(64) },
	{ "vmap-256k-order0-far", FAR, .pages = VMAP_ARRAY, EACH(64) },
	/* each call spans the end of a table */
	{ "vmap-256k-order0-split", FAR, .pages = 3200, .step = ENTRIES,
	  EACH(64), .value[AT_PAGE] = ENTRIES - 32 },
	{ "vmap-256k-order0-empty", FAR, .pages = 3200, .step = ENTRIES,
	  EACH(64), EMPTY },
	{ "vmap-1page", RUNS, .pages = VMAP_ARRAY, EACH(1) },
	{ "vmalloc-1m", RUNS, .pages = VMAP_ARRAY, EACH(256),
	  .value[ENTRY] = VMALLOC, .value[SHIFT] = 12 },
	{ "vmalloc-100m-huge", RUNS, WHOLE, EMPTY, .value[ORDER] = 9,
	  .value[ENTRY] = VMALLOC, .value[SHIFT] = 21 },
	{ "ioremap-256k", RUNS, .pages = VMAP_ARRAY, EACH(64),
	  .value[ENTRY] = RANGE, .value[SHIFT] = ANY_SIZE },
	{ "ioremap-1m", RUNS, .pages = VMAP_ARRAY, EACH(256),
	  .value[ENTRY] = RANGE, .value[SHIFT] = ANY_SIZE },
	/* neither starts nor ends at a block */
	{ "ioremap-100m", RUNS, WHOLE, EMPTY, .value[ENTRY] = RANGE,
	  .value[SHIFT] = ANY_SIZE, .value[AT_PAGE] = 256,
	  .value[PHYSICAL] = 256 },
	{ "ioremap-1g", RUNS, .pages = VMAP_MOST, EACH(VMAP_MOST), EMPTY,
	  .value[ENTRY] = RANGE, .value[SHIFT] = ANY_SIZE,
	  .value[PHYSICAL] = ENTRIES },
};

#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static void add_scenario(struct scenario *s, size_t nr)
{
	snprintf(s->name, sizeof(s->name), "%s", jobs[nr].name);
	memcpy(s->value, jobs[nr].value, sizeof(jobs[nr].value));
	s->pages = jobs[nr].pages;
	s->pages_per_call = s->value[PAGES];
	s->from = jobs[nr].step ? jobs[nr].step : s->pages_per_call;
	s->kind = jobs[nr].shape;
	s->bytes = s->pages * sizeof(*vmap_tables);
	s->repeat = 20;
	s->modes = vmap_modes + !jobs[nr].block;
}

/* Lists the scenarios; returns how many. */
unsigned int vmap_jobs(struct scenario *list)
{
	unsigned int nr;

	for (nr = 0; nr < JOBS; nr++)
		add_scenario(&list[nr], nr);
	return nr;
}

/* The numbers of a case of the fuzzer. */
void vmap_draw(uint64_t *v)
{
	uint64_t random = random_next();

	v[ENTRY] = random % ENTRIES_NR;
	v[SEED] = random_next() % (1ULL << 32);
	v[AT_PAGE] = random >> 8 & 1 ? random % (2 * ENTRIES) : 0;
	v[PAGES] = 1 + random_next() % (1ULL << random_next() % 12);
	v[ORDER] = random_next() % 12;
	v[MISSING] = (random >> 16) % MISSING_NR;
	v[PROT] = random >> 24 & 3 ? 0 : (random >> 26) % VMAP_PROTS;
	v[SHIFT] = v[ENTRY] == RANGE ? ANY_SIZE : 12;
	v[PHYSICAL] = v[AT_PAGE] + (random >> 32 & 1 ? random >> 33 & 1023 : 0);
	if (v[ENTRY] == RANGE || random >> 48 & 1)
		return;
	v[ODD] = (random >> 49) % ODDS;
	v[ODD_AT] = random_next() % v[PAGES];
}

/* The scenario of a case; false: out of range. */
bool vmap_build(struct scenario *s, const uint64_t *v)
{
	bool huge = v[ENTRY] == VMALLOC && v[SHIFT] != 12;
	uint64_t most = TABLES / 2 * ENTRIES;

	if (v[ENTRY] >= ENTRIES_NR || v[MISSING] >= MISSING_NR ||
	    v[PROT] >= VMAP_PROTS || v[ODD] >= ODDS || v[ORDER] > 16 || huge ||
	    !v[PAGES] || v[PAGES] > most || v[AT_PAGE] > most - v[PAGES] ||
	    v[ODD_AT] >= v[PAGES] || v[PHYSICAL] > VMAP_SPAN ||
	    (v[ENTRY] == RANGE && v[ODD]))
		return false;
	memcpy(s->value, v, FIELDS * sizeof(*v));
	s->kind = ANY;
	s->pages = s->pages_per_call = s->from = v[PAGES];
	s->bytes = s->pages * sizeof(*vmap_tables);
	s->modes = vmap_modes;
	s->unlimited = true;
	return true;
}
