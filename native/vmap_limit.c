// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of vmap: loops that write the same page table entries. Unrolled, as
 * the module's own are: rolled up, one took half as long again (Zen 4).
 */
#include "vmap.h"

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

	for (i = 0; i < s->pages; i += s->each, at += s->from) {
		uint64_t *to = vmap_tables + at % (TABLES * ENTRIES);

		if (s->value[ENTRY] == RANGE)
			limit_range(to, vmap_value(s, i), s->each);
		else
			limit_pages(to, vmap_array + i, s->each);
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

/**
 * vmap_limit() - the job as a loop
 * @s:   the scenario
 * @arm: the only limit
 */
void vmap_limit(const struct scenario *s, const struct arm *arm)
{
	if (s->modes == vmap_modes)
		limit_blocks(s);
	else if (s->value[MISSING] && s->value[SHIFT])
		limit_leaves(s);
	else
		limit_entries(s);
}
