// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmap: the functions that map arrays of pages and physical ranges.
 *
 * Physical addresses are addresses of the process, so that the kernel walks
 * tables built here below its own top level. Tables exist in advance or (empty)
 * are allocated: the kernel's table allocator is replaced by a pool.
 */
#include <stdio.h>
#include <string.h>

#include "vmap.h"

#define ADDRESS 0xffffc90000000000ULL /* where vmalloc() begins, unrandomised */
#define TABLE	 0x63ULL	      /* _KERNPG_TABLE */
#define LEAF	 0x80ULL	      /* _PAGE_PSE; in a small entry: PAT */
#define LEAF_PAT 0x1000ULL
#define NUMBER	 0x000ffffffffff000ULL /* the PFN bits of an entry */
#define MAPPED	 25600ULL	       /* pages: 100 MiB */
#define GIB	 262144ULL	       /* pages */
#define ENTRIES	 512ULL
#define TABLES	 52ULL /* mappings may start inside one */
#define VM_MAP	 4UL
#define ANY_SIZE 63 /* as in ioremap(): any size of entry */

/* Defines a scenario; a case of the fuzzer gives all of these. */
enum field {
	ENTRY,	  /* enum entry */
	SEED,	  /* of the array, and of the missing tables */
	AT_PAGE,  /* first address, in pages */
	PAGES,	  /* of a call */
	ORDER,	  /* of the longest run */
	MISSING,  /* enum missing */
	ODD,	  /* enum odd */
	ODD_AT,	  /* which page is odd */
	PROT,	  /* index of prots[] */
	SHIFT,	  /* of the largest entry allowed */
	PHYSICAL, /* first page of a range */
	FIELDS,
};

static const char *const fields[FIELDS + 1] = {
	"entry", "seed",   "at",   "pages", "order",	"missing",
	"odd",	 "odd_at", "prot", "shift", "physical", NULL,
};

enum entry {
	PAGE_ARRAY, /* vmap_small_pages_range_noflush() */
	RANGE,	    /* vmap_range_noflush(), for ioremap() */
	VMALLOC,    /* __vmap_pages_range_noflush() */
	ENTRIES_NR
};

enum missing {
	NONE_MISSING,
	ALL_MISSING,
	SOME_MISSING,
	MISSING_NR
};

/* How the array of a scenario is built. */
enum shape {
	RUNS, /* of one order, in random order */
	FAR,  /* spread over all memory */
	MIXED,
	ADJACENT, /* blocks that happen to be contiguous */
	ANY,	  /* a case of the fuzzer */
};

/* PAGE_KERNEL, RO, executable, WC, WT, not present, none. */
static const uint64_t prots[] = {
	0x8000000000000163, 0x8000000000000121, 0x163, 0x800000000000016b,
	0x80000000000001fb, 0x8000000000000162, 0,
};

#define PROTS (sizeof(prots) / sizeof(prots[0]))

typedef int pages_fn(uint64_t from, uint64_t to, uint64_t prot, void **pages);
typedef int range_fn(uint64_t from, uint64_t to, uint64_t physical,
		     uint64_t prot, unsigned int shift);
typedef int vmalloc_fn(uint64_t from, uint64_t to, uint64_t prot, void **pages,
		       unsigned int shift);

static pages_fn *map_pages;
static range_fn *map_range;
static vmalloc_fn *map_vmalloc;
static void **array;
static char *area;
static uint64_t *middle, *tables; /* page table entries: of 2 MiB, of 4 KiB */
static size_t taken;
static uint64_t *kept;
static int result, kept_result;
static unsigned int kept_warnings;

/* Replaces __pte_alloc_kernel(); tables are cleared in advance. */
static int table_alloc(uint64_t *entry)
{
	if (taken == TABLES)
		return -12;
	*entry = (uint64_t)&tables[ENTRIES * taken++] | TABLE;
	return 0;
}

/* Replaces pmd_free_pte_page(), which would flush the TLBs. */
static int table_free(uint64_t *entry, uint64_t address)
{
	*entry = 0;
	return 1;
}

/* Replaces find_vm_area(): an area of vmap(). */
static void *area_find(const void *address)
{
	return area;
}

/* Marks MTRRs as known and off: the kernel checks before it maps 2 MiB. */
static void memory_types_make(void)
{
	char *known = symbol_or_null("mtrr_state_set", 'k');

	if (known)
		AT(char, known, 0) = 1;
}

static void tables_make(void)
{
	uint64_t *top = AT(uint64_t *, symbol("init_mm"),
			   OFFSET("mm_struct.pgd"));
	uint64_t *upper = (uint64_t *)memory(PAGE);

	middle = (uint64_t *)memory(PAGE);
	tables = (uint64_t *)memory(TABLES * PAGE);
	top[ADDRESS >> 39 & (ENTRIES - 1)] = (uint64_t)upper | TABLE;
	upper[ADDRESS >> 30 & (ENTRIES - 1)] = (uint64_t)middle | TABLE;
}

/* The scenarios: pages in all, pages per call, distance between calls. */
static const struct {
	const char *name;
	enum shape shape;
	bool block; /* there is room for blocks */
	bool extra;
	uint64_t pages, step;
	uint64_t value[FIELDS];
} jobs[] = {
#define EACH(nr) .value[PAGES] = (nr)
#define WHOLE	 .pages = MAPPED, EACH(MAPPED)
#define EMPTY	 .value[MISSING] = ALL_MISSING
	{ "vmap-100m-order0", RUNS, WHOLE },
	{ "vmap-100m-order0-far", FAR, WHOLE },
	{ "vmap-100m-order4", RUNS, WHOLE, .value[ORDER] = 4 },
	{ "vmap-100m-order8", RUNS, WHOLE, .value[ORDER] = 8 },
	{ "vmap-100m-order9", RUNS, WHOLE, .value[ORDER] = 9 },
	{ "vmap-100m-mixed", MIXED, WHOLE },
	{ "vmap-100m-order8-adjacent", ADJACENT, true, WHOLE, EMPTY },
	{ "vmap-100m-order9-empty", RUNS, true, WHOLE, EMPTY,
	  .value[ORDER] = 9 },
	{ "vmap-256k-order0", RUNS, .pages = MAPPED, EACH(64) },
	{ "vmap-256k-order0-far", FAR, .pages = MAPPED, EACH(64) },
	/* each call spans the end of a table */
	{ "vmap-256k-order0-split", FAR, .pages = 3200, .step = ENTRIES,
	  EACH(64), .value[AT_PAGE] = ENTRIES - 32 },
	{ "vmap-256k-order0-empty", FAR, .pages = 3200, .step = ENTRIES,
	  EACH(64), EMPTY },
	{ "vmap-1page", RUNS, .pages = MAPPED, EACH(1) },
	{ "vmalloc-1m", RUNS, .pages = MAPPED, EACH(256),
	  .value[ENTRY] = VMALLOC, .value[SHIFT] = 12 },
	{ "vmalloc-100m-huge", RUNS, WHOLE, EMPTY, .value[ORDER] = 9,
	  .value[ENTRY] = VMALLOC, .value[SHIFT] = 21 },
	{ "ioremap-256k", RUNS, .pages = MAPPED, EACH(64),
	  .value[ENTRY] = RANGE, .value[SHIFT] = ANY_SIZE },
	{ "ioremap-1m", RUNS, .pages = MAPPED, EACH(256), .value[ENTRY] = RANGE,
	  .value[SHIFT] = ANY_SIZE },
	/* neither starts nor ends at a block */
	{ "ioremap-100m", RUNS, WHOLE, EMPTY, .value[ENTRY] = RANGE,
	  .value[SHIFT] = ANY_SIZE, .value[AT_PAGE] = 256,
	  .value[PHYSICAL] = 256 },
	{ "ioremap-1g", RUNS, .pages = GIB, EACH(GIB), EMPTY,
	  .value[ENTRY] = RANGE, .value[SHIFT] = ANY_SIZE,
	  .value[PHYSICAL] = ENTRIES },
};

#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static const struct mode modes[] = { { "block", -1, NULL },
				     { "pte", -1, NULL },
				     { NULL, -1, NULL } };

static void add(struct scenario *s, size_t nr)
{
	snprintf(s->name, sizeof(s->name), "%s", jobs[nr].name);
	memcpy(s->value, jobs[nr].value, sizeof(jobs[nr].value));
	s->extra = jobs[nr].extra;
	s->pages = jobs[nr].pages;
	s->each = s->value[PAGES];
	s->from = jobs[nr].step ? jobs[nr].step : s->each;
	s->kind = jobs[nr].shape;
	s->bytes = s->pages * sizeof(*tables);
	s->repeat = 20;
	s->modes = modes + !jobs[nr].block;
}

static unsigned int vmap_setup(struct scenario *list, uint64_t size)
{
	unsigned int nr;

	for (nr = 0; nr < JOBS; nr++)
		add(&list[nr], nr);
	map_pages = (pages_fn *)symbol("vmap_small_pages_range_noflush");
	map_range = (range_fn *)symbol("vmap_range_noflush");
	map_vmalloc = (vmalloc_fn *)symbol("__vmap_pages_range_noflush");
	divert("__pte_alloc_kernel", table_alloc);
	divert("pmd_free_pte_page", table_free);
	divert("find_vm_area", area_find);
	area = need(SIZE("vm_struct"));
	AT(uint64_t, area, OFFSET("vm_struct.flags")) = VM_MAP;
	vmap_pages_make();
	AT(uint64_t, symbol("page_offset_base"), 0) = 0;
	tables_make();
	memory_types_make();
	faults_count_warnings();
	array = need(MAPPED * sizeof(*array));
	kept = need(GIB * sizeof(*kept));
	return nr;
}

static void vmap_enter(const struct scenario *s)
{
	const uint64_t *v = s->value;

	if (v[ENTRY] == RANGE)
		return;
	switch ((enum shape)s->kind) {
	case MIXED:
		vmap_mixed(array, s->pages);
		break;
	case ADJACENT:
		vmap_adjacent(array, s->pages);
		break;
	case ANY:
		random_seed(v[SEED]);
		vmap_any(array, s->pages, (unsigned int)v[ORDER], v[AT_PAGE]);
		if (v[ODD] && v[ODD] != ODD_TAKEN)
			array[v[ODD_AT]] = vmap_odd((enum odd)v[ODD]);
		break;
	default:
		vmap_runs(array, s->pages, (unsigned int)v[ORDER],
			  s->kind == FAR ? VMAP_SPAN : VMAP_NEAR);
	}
}

/* Entries that a call may touch, and their neighbours. */
static uint64_t reach(const struct scenario *s)
{
	uint64_t calls = s->pages / s->each;
	uint64_t end = s->value[AT_PAGE] + (calls - 1) * s->from + s->each;

	return (end + ENTRIES - 1) & ~(ENTRIES - 1);
}

/* Tables present in advance are separate from those in the pool. */
static void vmap_reset(const struct scenario *s)
{
	const uint64_t *v = s->value;
	uint64_t used = reach(s) / ENTRIES, i, missing = 0;

	if (v[MISSING] == SOME_MISSING)
		missing = v[SEED];
	else if (v[MISSING] == ALL_MISSING)
		missing = ~0ULL;
	taken = missing == ~0ULL ? 0 : used;
	memset(tables, 0,
	       (taken + used < TABLES ? taken + used : TABLES) * PAGE);
	for (i = 0; i < used; i++)
		middle[i] = missing >> i % 64 & 1 ?
				    0 :
				    (uint64_t)&tables[ENTRIES * i] | TABLE;
	if (s->kind != ANY || v[MISSING])
		return;
	/* neighbours, and an entry that may be in the way */
	for (i = 0; i < used * ENTRIES; i++)
		if (i < v[AT_PAGE] || i >= v[AT_PAGE] + v[PAGES])
			tables[i] = i * PAGE | TABLE;
	if (v[ODD] == ODD_TAKEN)
		tables[v[AT_PAGE] + v[ODD_AT]] = TABLE;
}

static int call(const struct scenario *s, uint64_t at, void **pages)
{
	const uint64_t *v = s->value;
	uint64_t end = at + s->each * PAGE, prot = prots[v[PROT]];

	if (v[ENTRY] == PAGE_ARRAY)
		return map_pages(at, end, prot, pages);
	if (v[ENTRY] == VMALLOC)
		return map_vmalloc(at, end, prot, pages, (unsigned int)v[SHIFT]);
	return map_range(at, end, (VMAP_START + v[PHYSICAL]) * PAGE, prot,
			 (unsigned int)v[SHIFT]);
}

/* Maps one array after another, one call each. */
static void vmap_call(const struct scenario *s)
{
	uint64_t at = ADDRESS + s->value[AT_PAGE] * PAGE, i;

	result = 0;
	for (i = 0; i < s->pages; i += s->each, at += s->from * PAGE)
		result |= call(s, at, array + i);
}

static uint64_t value(const struct scenario *s, uint64_t i)
{
	if (s->value[ENTRY] == RANGE)
		return (VMAP_START + s->value[PHYSICAL] + i % s->each) * PAGE |
		       prots[0];
	return vmap_pfn(array[i]) * PAGE | prots[0];
}

/* Writes the same entries in a plain loop. */
static void limit_pages(volatile uint64_t *to, void *const *pages, uint64_t nr)
{
	const char *expected = NULL;
	uint64_t record = 1ULL << vmap_record_bits, entry = 0, i;

	for (i = 0; i < nr; i++, entry += PAGE) {
		if (pages[i] != expected)
			entry = vmap_pfn(pages[i]) * PAGE | prots[0];
		expected = (char *)pages[i] + record;
		to[i] = entry;
	}
}

static void limit_range(volatile uint64_t *to, uint64_t entry, uint64_t nr)
{
	for (; nr--; entry += PAGE)
		*to++ = entry;
}

static void limit_entries(const struct scenario *s)
{
	uint64_t at = s->value[AT_PAGE], i;

	for (i = 0; i < s->pages; i += s->each, at += s->from) {
		uint64_t *to = tables + at % (TABLES * ENTRIES);

		if (s->value[ENTRY] == RANGE)
			limit_range(to, value(s, i), s->each);
		else
			limit_pages(to, array + i, s->each);
	}
}

/* Fast if the compiler knows the size. */
static inline bool is_run(void *const *pages, uint64_t record)
{
	const char *page = pages[0];
	uint64_t k;

#pragma GCC unroll 8
	for (k = 0; k < ENTRIES; k++)
		if (pages[k] != page + k * record)
			return false;
	return true;
}

/* Writes PMD entries, after comparing the array: no method can skip that. */
static void limit_blocks(const struct scenario *s)
{
	uint64_t i, record = 1ULL << vmap_record_bits;
	volatile uint64_t *to = middle;

	for (i = 0; i < s->pages; i += ENTRIES)
		if (record == 64 ? is_run(array + i, 64) :
				   is_run(array + i, record))
			*to++ = value(s, i) | LEAF;
}

static void limit_leaves(const struct scenario *s)
{
	volatile uint64_t *to = middle;
	uint64_t i;

	for (i = 0; i < s->pages; i += ENTRIES)
		*to++ = value(s, i) | LEAF;
}

static void vmap_limit(const struct scenario *s, const struct arm *arm)
{
	if (s->modes == modes)
		limit_blocks(s);
	else if (s->value[MISSING] && s->value[SHIFT])
		limit_leaves(s);
	else
		limit_entries(s);
}

/* The PFN and protection mapped at a page, whatever the size of the entry. */
static uint64_t translated(uint64_t i)
{
	uint64_t entry = middle[i / ENTRIES], pat;

	if (entry & LEAF) {
		pat = entry & LEAF_PAT ? LEAF : 0;
		entry = (entry & ~(LEAF | LEAF_PAT)) | pat;
		return entry + i % ENTRIES * PAGE;
	}
	entry &= NUMBER;
	return entry ? ((uint64_t *)entry)[i % ENTRIES] : 0;
}

static void vmap_keep(const struct scenario *s)
{
	uint64_t nr = reach(s), at, i;

	kept_result = result;
	kept_warnings = faults_warnings();
	for (i = 0; i < nr; i++)
		kept[i] = translated(i);
	if (s->kind == ANY)
		return;
	if (result)
		die("%s: the kernel's function fails", s->name);
	for (i = 0; i < s->pages; i++) {
		at = s->value[AT_PAGE] + i / s->each * s->from + i % s->each;
		if (kept[at] != value(s, i))
			die("%s: the kernel's entry %llu is 0x%llx", s->name,
			    (unsigned long long)at,
			    (unsigned long long)kept[at]);
	}
}

/* Same return value, warnings and translations, neighbours included. */
static bool vmap_right(const struct scenario *s)
{
	uint64_t nr = reach(s), i;

	if (result != kept_result || faults_warnings() != kept_warnings)
		return false;
	for (i = 0; i < nr; i++)
		if (translated(i) != kept[i])
			return false;
	return true;
}

static char *vmap_output(const struct scenario *s)
{
	uint64_t at = s->value[AT_PAGE] + s->each / 2;
	uint64_t *entry = middle + at / ENTRIES;

	if (!(*entry & LEAF))
		entry = (uint64_t *)(*entry & NUMBER) + at % ENTRIES;
	return (char *)entry + 2;
}

static void vmap_draw(uint64_t *v)
{
	uint64_t any = random_next();

	v[ENTRY] = any % ENTRIES_NR;
	v[SEED] = random_next() % (1ULL << 32);
	v[AT_PAGE] = any >> 8 & 1 ? any % (2 * ENTRIES) : 0;
	v[PAGES] = 1 + random_next() % (1ULL << random_next() % 12);
	v[ORDER] = random_next() % 12;
	v[MISSING] = (any >> 16) % MISSING_NR;
	v[PROT] = any >> 24 & 3 ? 0 : (any >> 26) % PROTS;
	v[SHIFT] = v[ENTRY] == RANGE ? ANY_SIZE : 12;
	v[PHYSICAL] = v[AT_PAGE] + (any >> 32 & 1 ? any >> 33 & 1023 : 0);
	if (v[ENTRY] == RANGE || any >> 48 & 1)
		return;
	v[ODD] = (any >> 49) % ODDS;
	v[ODD_AT] = random_next() % v[PAGES];
}

static bool vmap_build(struct scenario *s, const uint64_t *v)
{
	bool huge = v[ENTRY] == VMALLOC && v[SHIFT] != 12;

	if (v[ENTRY] >= ENTRIES_NR || v[MISSING] >= MISSING_NR ||
	    v[PROT] >= PROTS || v[ODD] >= ODDS || v[ORDER] > 16 || huge ||
	    !v[PAGES] || v[AT_PAGE] + v[PAGES] > TABLES / 2 * ENTRIES ||
	    v[ODD_AT] >= v[PAGES] || v[PHYSICAL] > VMAP_SPAN ||
	    (v[ENTRY] == RANGE && v[ODD]))
		return false;
	memcpy(s->value, v, FIELDS * sizeof(*v));
	s->kind = ANY;
	s->pages = s->each = s->from = v[PAGES];
	s->modes = modes;
	return true;
}

const struct family vmap_family = {
	.name = "vmap",
	.path = "bmm_vmap",
	.modes = modes,
	.setup = vmap_setup,
	.enter = vmap_enter,
	.reset = vmap_reset,
	.call = vmap_call,
	.limit = vmap_limit,
	.keep = vmap_keep,
	.right = vmap_right,
	.output = vmap_output,
	.fields = fields,
	.draw = vmap_draw,
	.build = vmap_build,
};
