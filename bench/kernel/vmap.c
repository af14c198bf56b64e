// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmap: the functions that map arrays of pages and physical ranges.
 *
 * Physical addresses are addresses of the process, so that the kernel walks
 * tables built here below its own top level. Tables exist in advance or (empty)
 * are allocated: the kernel's table allocator is replaced by a pool.
 */
#include <string.h>

#include "vmap.h"

#define ADDRESS 0xffffc90000000000ULL /* where vmalloc() begins, unrandomised */
#define TABLE	 0x63ULL	      /* _KERNPG_TABLE */
#define LEAF_PAT 0x1000ULL
#define NUMBER	 0x000ffffffffff000ULL /* the PFN bits of an entry */
#define VM_MAP	 4UL

void **vmap_array;
uint64_t *vmap_middle, *vmap_tables;

/* The series upstream/7.3/vmap adds the size of entries, which others ignore. */
typedef int pages_fn(uint64_t from, uint64_t to, uint64_t prot, void **pages,
		     unsigned int shift);
typedef int range_fn(uint64_t from, uint64_t to, uint64_t physical,
		     uint64_t prot, unsigned int shift);
typedef int vmalloc_fn(uint64_t from, uint64_t to, uint64_t prot, void **pages,
		       unsigned int shift);

static PER_KERNEL pages_fn *map_pages;
static PER_KERNEL range_fn *map_range;
static PER_KERNEL vmalloc_fn *map_vmalloc;
static PER_KERNEL char *area;
static size_t tables_used;
static uint64_t *kernel_entries;
static int result, kept_result;
static unsigned int kept_warnings;

/* Replaces __pte_alloc_kernel(); tables are cleared in advance. */
static int table_alloc(uint64_t *entry)
{
	if (tables_used == TABLES)
		return -12;
	*entry = (uint64_t)&vmap_tables[ENTRIES * tables_used++] | TABLE;
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
	char *probe = symbol_or_null("mtrr_state_set", 'k');

	if (probe)
		AT(char, probe, 0) = 1;
}

static void tables_make(void)
{
	uint64_t *top = AT(uint64_t *, symbol("init_mm"),
			   OFFSET("mm_struct.pgd"));
	uint64_t *upper = (uint64_t *)map_memory(PAGE);

	vmap_middle = (uint64_t *)map_memory(PAGE);
	vmap_tables = (uint64_t *)map_memory(TABLES * PAGE);
	top[ADDRESS >> 39 & (ENTRIES - 1)] = (uint64_t)upper | TABLE;
	upper[ADDRESS >> 30 & (ENTRIES - 1)] = (uint64_t)vmap_middle | TABLE;
}

/* The kernel's own way to vmap_small_pages_range_noflush(): no larger entry. */
static int map_by_caller(uint64_t from, uint64_t to, uint64_t prot,
			 void **pages, unsigned int shift)
{
	return map_vmalloc(from, to, prot, pages, 12);
}

static unsigned int vmap_setup(struct scenario *list, uint64_t size)
{
	map_range = (range_fn *)symbol("vmap_range_noflush");
	map_vmalloc = (vmalloc_fn *)symbol("__vmap_pages_range_noflush");
	map_pages = (pages_fn *)symbol_or_null("vmap_small_pages_range_noflush",
					       'k');
	if (!map_pages) /* inlined */
		map_pages = map_by_caller;
	divert("__pte_alloc_kernel", table_alloc);
	divert("pmd_free_pte_page", table_free);
	divert("find_vm_area", area_find);
	area = require_memory(SIZE("vm_struct"));
	AT(uint64_t, area, OFFSET("vm_struct.flags")) = VM_MAP;
	vmap_pages_make();
	AT(uint64_t, symbol("page_offset_base"), 0) = 0;
	tables_make();
	memory_types_make();
	faults_count_warnings();
	vmap_array = require_memory(VMAP_ARRAY * sizeof(*vmap_array));
	kernel_entries = require_memory(VMAP_MOST * sizeof(*kernel_entries));
	return vmap_jobs(list);
}

/* Entries that a call may touch, and their neighbours. */
static uint64_t reach(const struct scenario *s)
{
	uint64_t calls = s->pages / s->pages_per_call;
	uint64_t end = s->value[AT_PAGE] + (calls - 1) * s->from +
		       s->pages_per_call;

	return (end + ENTRIES - 1) & ~(ENTRIES - 1);
}

/* Tables present in advance are separate from those in the pool. */
static void vmap_reset(const struct scenario *s)
{
	const uint64_t *v = s->value;
	uint64_t used = reach(s) / ENTRIES, i, missing = 0, table;

	if (v[MISSING] == SOME_MISSING)
		missing = v[SEED];
	else if (v[MISSING] == ALL_MISSING)
		missing = ~0ULL;
	tables_used = missing == ~0ULL ? 0 : used;
	memset(vmap_tables, 0,
	       (tables_used + used < TABLES ? tables_used + used : TABLES) *
		       PAGE);
	for (i = 0; i < used; i++) {
		table = (uint64_t)&vmap_tables[ENTRIES * i] | TABLE;
		vmap_middle[i] = missing >> i % 64 & 1 ? 0 : table;
	}
	if (s->kind != ANY || v[MISSING])
		return;
	/* neighbours, and an entry that may be in the way */
	for (i = 0; i < used * ENTRIES; i++)
		if (i < v[AT_PAGE] || i >= v[AT_PAGE] + v[PAGES])
			vmap_tables[i] = i * PAGE | TABLE;
	if (v[ODD] == ODD_TAKEN)
		vmap_tables[v[AT_PAGE] + v[ODD_AT]] = TABLE;
}

static int call(const struct scenario *s, uint64_t at, void **pages)
{
	const uint64_t *v = s->value;
	uint64_t end = at + s->pages_per_call * PAGE,
		 prot = vmap_prots[v[PROT]];

	if (v[ENTRY] == PAGE_ARRAY)
		return map_pages(at, end, prot, pages, (unsigned int)v[SHIFT]);
	if (v[ENTRY] == VMALLOC)
		return map_vmalloc(at, end, prot, pages, (unsigned int)v[SHIFT]);
	return map_range(at, end, (VMAP_START + v[PHYSICAL]) * PAGE, prot,
			 (unsigned int)v[SHIFT]);
}

/* Maps one array after another, one call each. */
static void call_all(const struct scenario *s)
{
	uint64_t at = ADDRESS + s->value[AT_PAGE] * PAGE, i;

	result = 0;
	for (i = 0; i < s->pages; i += s->pages_per_call, at += s->from * PAGE)
		result |= call(s, at, vmap_array + i);
}

/* The PFN and protection mapped at a page, whatever the size of the entry. */
static uint64_t translated(uint64_t i)
{
	uint64_t entry = vmap_middle[i / ENTRIES], pat;

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
		kernel_entries[i] = translated(i);
	if (s->kind == ANY)
		return;
	if (result)
		fatal("%s: the kernel's function fails", s->name);
	for (i = 0; i < s->pages; i++) {
		at = s->value[AT_PAGE] + i / s->pages_per_call * s->from +
		     i % s->pages_per_call;
		if (kernel_entries[at] != vmap_value(s, i))
			fatal("%s: the kernel's entry %llu is 0x%llx", s->name,
			      (unsigned long long)at,
			      (unsigned long long)kernel_entries[at]);
	}
}

/* Same return value, warnings and translations, neighbours included. */
static bool vmap_right(const struct scenario *s)
{
	uint64_t nr = reach(s), i;

	if (faults_warnings() != kept_warnings || result != kept_result)
		return false;
	for (i = 0; i < nr; i++)
		if (translated(i) != kernel_entries[i])
			return false;
	return true;
}

static char *vmap_output(const struct scenario *s)
{
	uint64_t at = s->value[AT_PAGE] + s->pages_per_call / 2;
	uint64_t *entry = vmap_middle + at / ENTRIES;

	if (!(*entry & LEAF))
		entry = (uint64_t *)(*entry & NUMBER) + at % ENTRIES;
	return (char *)entry + 2;
}

/*
 * The limit: loops that write the same page table entries. Unrolled, as
 * the module's own are: rolled up, one took half as long again (Zen 4).
 */
static void limit_pages(volatile uint64_t *to, void *const *pages, uint64_t nr)
{
	const char *expected = NULL;
	uint64_t record = 1ULL << vmap_record_bits, entry = 0, i;

#pragma GCC unroll 8
	for (i = 0; i < nr; i++, entry += PAGE) {
		if (pages[i] != expected)
			entry = vmap_pfn(pages[i]) * PAGE | VMAP_KERNEL;
		expected = (char *)pages[i] + record;
		to[i] = entry;
	}
}

static void limit_range(volatile uint64_t *to, uint64_t entry, uint64_t nr)
{
#pragma GCC unroll 8
	for (; nr--; entry += PAGE)
		*to++ = entry;
}

static void limit_entries(const struct scenario *s)
{
	uint64_t at = s->value[AT_PAGE], i;

	for (i = 0; i < s->pages; i += s->pages_per_call, at += s->from) {
		uint64_t *to = vmap_tables + at % (TABLES * ENTRIES);

		if (s->value[ENTRY] == RANGE)
			limit_range(to, vmap_value(s, i), s->pages_per_call);
		else
			limit_pages(to, vmap_array + i, s->pages_per_call);
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
	volatile uint64_t *to = vmap_middle;

	for (i = 0; i < s->pages; i += ENTRIES)
		if (record == 64 ? is_run(vmap_array + i, 64) :
				   is_run(vmap_array + i, record))
			*to++ = vmap_value(s, i) | LEAF;
}

static void limit_leaves(const struct scenario *s)
{
	volatile uint64_t *to = vmap_middle;
	uint64_t i;

	for (i = 0; i < s->pages; i += ENTRIES)
		*to++ = vmap_value(s, i) | LEAF;
}

static void vmap_call(const struct scenario *s, const struct variant *variant)
{
	if (!variant)
		call_all(s);
	else if (s->modes == vmap_modes)
		limit_blocks(s);
	else if (s->value[MISSING] && s->value[SHIFT])
		limit_leaves(s);
	else
		limit_entries(s);
}

const struct subject vmap_subject = {
	.name = "vmap",
	.path = "bmm_vmap_path",
	.modes = vmap_modes,
	.loop = true,
	.setup = vmap_setup,
	.enter = vmap_enter,
	.reset = vmap_reset,
	.call = vmap_call,
	.keep = vmap_keep,
	.right = vmap_right,
	.output = vmap_output,
	.fields = vmap_fields,
	.draw = vmap_draw,
	.build = vmap_build,
};
