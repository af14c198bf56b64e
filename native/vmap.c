// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmap: vmap_small_pages_range_noflush() on arrays of pages.
 *
 * Physical addresses are those of the process, so that the kernel walks tables
 * made here below its own top level. They are there beforehand, or (empty) are
 * asked for: the kernel's allocator of tables is replaced by a pool.
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

#define START 0x100000ULL	      /* PFN of the first page that is mapped */
#define SPAN  (1ULL << 18)	      /* pages to choose from */
#define ADDRESS 0xffffc90000000000ULL /* where vmalloc() begins, unrandomised */
#define PROT	0x8000000000000163ULL /* PAGE_KERNEL */
#define TABLE	0x63ULL		      /* _KERNPG_TABLE */
#define LEAF	0x80ULL		      /* _PAGE_PSE */
#define NUMBER	0x000ffffffffff000ULL /* the PFN's place in an entry */
#define MAPPED	25600ULL	      /* pages: 100 MiB */
#define ENTRIES 512
#define VM_MAP	4UL
#define PRESENT 0
#define EMPTY	1 /* tables are missing */

typedef int map_fn(uint64_t from, uint64_t to, uint64_t prot, void **pages);

static map_fn *map;
static void **array;
static char *pages_at, *area;
static uint64_t *middle, *tables; /* page table entries: of 2 MiB, of 4 KiB */
static size_t tables_nr, taken;
static uint64_t *kept;
static uint64_t record; /* bytes of a struct page */

/* In place of __pte_alloc_kernel(): tables are cleared beforehand. */
static int table_alloc(uint64_t *entry)
{
	if (taken == tables_nr)
		return -12;
	*entry = (uint64_t)&tables[ENTRIES * taken++] | TABLE;
	return 0;
}

/* In place of find_vm_area(): what vmap() made. */
static void *area_find(const void *address)
{
	return area;
}

static void add(struct scenario *s, const char *name, unsigned int order,
		uint64_t each, unsigned int kind)
{
	static const struct mode both[] = { { "block", -1 },
					    { "pte", -1 },
					    { NULL, -1 } };

	snprintf(s->name, sizeof(s->name), "%s", name);
	s->order = order;
	s->pages = MAPPED;
	s->each = each;
	s->kind = kind;
	s->bytes = MAPPED * sizeof(*tables);
	s->repeat = 20;
	s->modes = both + (kind == PRESENT);
}

/* MTRRs are known and off: the kernel asks before it maps 2 MiB. */
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
	tables_nr = MAPPED / ENTRIES;
	tables = (uint64_t *)memory(tables_nr * PAGE);
	top[ADDRESS >> 39 & (ENTRIES - 1)] = (uint64_t)upper | TABLE;
	upper[ADDRESS >> 30 & (ENTRIES - 1)] = (uint64_t)middle | TABLE;
}

static unsigned int vmap_setup(struct scenario *list, uint64_t size)
{
	unsigned int nr = 0;

	add(&list[nr++], "vmap-100m-order0", 0, MAPPED, PRESENT);
	add(&list[nr++], "vmap-100m-order4", 4, MAPPED, PRESENT);
	add(&list[nr++], "vmap-100m-order8", 8, MAPPED, PRESENT);
	add(&list[nr++], "vmap-100m-order9", 9, MAPPED, PRESENT);
	add(&list[nr++], "vmap-100m-order9-empty", 9, MAPPED, EMPTY);
	add(&list[nr++], "vmap-256k-order0", 0, 64, PRESENT);
	add(&list[nr++], "vmap-1page", 0, 1, PRESENT);
	record = SIZE("page");
	map = (map_fn *)symbol("vmap_small_pages_range_noflush");
	divert("__pte_alloc_kernel", table_alloc);
	divert("find_vm_area", area_find);
	area = need(SIZE("vm_struct"));
	AT(uint64_t, area, OFFSET("vm_struct.flags")) = VM_MAP;
	state_sections(START, SPAN, true);
	pages_at = state_pages(START, SPAN);
	AT(uint64_t, symbol("page_offset_base"), 0) = 0;
	tables_make();
	memory_types_make();
	array = need(MAPPED * sizeof(*array));
	kept = need(MAPPED * sizeof(*kept));
	return nr;
}

/* Runs of pages of an order, in random order; single ones never side by side. */
static void vmap_enter(const struct scenario *s)
{
	uint64_t run = 1ULL << s->order, step = run == 1 ? 2 : 1;
	uint64_t nr = SPAN / step / run, i, from = 0;
	/* a power of two, so that an odd stride meets each run once */
	uint64_t first = random_next() % nr, stride = nr / 2 + 1;

	for (i = 0; i < s->pages; i++) {
		if (i % run == 0)
			from = (first + i / run * stride) % nr * run;
		array[i] = pages_at + (from + i % run) * step * record;
	}
}

static void vmap_reset(const struct scenario *s)
{
	size_t used = (s->pages + ENTRIES - 1) / ENTRIES, i;

	memset(tables, 0, used * PAGE);
	taken = 0;
	for (i = 0; i < used; i++)
		middle[i] = s->kind == EMPTY ?
				    0 :
				    (uint64_t)&tables[ENTRIES * i] | TABLE;
}

/* One array after the other, each of its own call. */
static void vmap_call(const struct scenario *s)
{
	uint64_t i, at;

	for (i = 0; i < s->pages; i += s->each) {
		at = ADDRESS + i * PAGE;
		if (map(at, at + s->each * PAGE, PROT, array + i))
			die("%s: the kernel's function fails", s->name);
	}
}

static uint64_t value(const void *page)
{
	uint64_t number = (uint64_t)((const char *)page - pages_at);

	return (START + number / record) * PAGE | PROT;
}

/* The same entries, by nothing but a loop. */
static void vmap_limit(const struct scenario *s, const struct arm *arm)
{
	volatile uint64_t *to = tables;
	const void *expected = NULL;
	uint64_t i, entry = 0;

	for (i = 0; i < s->pages; i++, entry += PAGE) {
		if (array[i] != expected)
			entry = value(array[i]);
		expected = (char *)array[i] + record;
		to[i] = entry;
	}
}

/* What is mapped at a page: PFN and protection, whatever the size of entry. */
static uint64_t translated(uint64_t i)
{
	uint64_t entry = middle[i / ENTRIES];

	if (entry & LEAF)
		return (entry & ~LEAF) + i % ENTRIES * PAGE;
	entry &= NUMBER;
	return entry ? ((uint64_t *)entry)[i % ENTRIES] : 0;
}

static void vmap_keep(const struct scenario *s)
{
	uint64_t i;

	for (i = 0; i < s->pages; i++) {
		kept[i] = translated(i);
		if (kept[i] != value(array[i]))
			die("%s: the kernel's entry %llu is 0x%llx", s->name,
			    (unsigned long long)i, (unsigned long long)kept[i]);
	}
}

static bool vmap_right(const struct scenario *s)
{
	uint64_t i;

	for (i = 0; i < s->pages; i++)
		if (translated(i) != kept[i])
			return false;
	return true;
}

static char *vmap_output(const struct scenario *s)
{
	uint64_t *entry = middle + MAPPED / ENTRIES / 2;

	if (!(*entry & LEAF))
		entry = (uint64_t *)(*entry & NUMBER);
	return (char *)entry + 2;
}

const struct family vmap_family = {
	.name = "vmap",
	.path = "bmm_vmap",
	.setup = vmap_setup,
	.enter = vmap_enter,
	.reset = vmap_reset,
	.call = vmap_call,
	.limit = vmap_limit,
	.keep = vmap_keep,
	.right = vmap_right,
	.output = vmap_output,
};
