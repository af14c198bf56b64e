// SPDX-License-Identifier: GPL-2.0-only
/* Struct pages, which are never read, and arrays of them. */
#include <string.h>

#include "vmap.h"

/*
 * After the sections present at boot: one added later, one with every other
 * subsection added later, one that does not exist.
 */
enum late {
	LATE = VMAP_SPAN,
	PARTIAL = LATE + PAGES_SECTION,
	ABSENT = PARTIAL + PAGES_SECTION,
	END = ABSENT + PAGES_SECTION
};

#define EVERY_OTHER 0x5555555555555555ULL

char *vmap_pages;
unsigned int vmap_record_bits;

static char *section_of(uint64_t number)
{
	return state_section(VMAP_START + number);
}

static void make_late(uint64_t number, uint64_t subsections)
{
	char *section = section_of(number), *usage;

	usage = AT(char *, section, OFFSET("mem_section.usage"));
	AT(uint64_t, section, OFFSET("mem_section.section_mem_map")) &= ~(
		1ULL << ENUM("SECTION_IS_EARLY_BIT"));
	AT(uint64_t, usage,
	   OFFSET("mem_section_usage.subsection_map")) = subsections;
}

/* Sets up the memory that is mapped. */
void vmap_pages_make(void)
{
	vmap_record_bits = (unsigned int)__builtin_ctzll(SIZE("page"));
	state_sections(VMAP_START, END, true);
	vmap_pages = state_pages(VMAP_START, END);
	make_late(LATE, ~0ULL);
	make_late(PARTIAL, EVERY_OTHER);
	AT(uint64_t, section_of(ABSENT),
	   OFFSET("mem_section.section_mem_map")) = 0;
}

/* The struct page of one of its pages. */
static void *page_of(uint64_t number)
{
	return vmap_pages + (number << vmap_record_bits);
}

/* A permutation of the numbers below a power of two, without a pattern. */
static uint64_t next_of(uint64_t last, uint64_t nr)
{
	return (last * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL) % nr;
}

/* Runs of one order, in random order; single pages are never adjacent. */
static void runs_make(void **array, uint64_t nr, unsigned int order,
		      uint64_t span)
{
	uint64_t run = 1ULL << order, step = run == 1 ? 2 : 1;
	uint64_t places = span / step / run, i;
	uint64_t place = random_next() % places;

	for (i = 0; i < nr; i++) {
		if (i % run == 0)
			place = next_of(place, places);
		array[i] = page_of((place * run + i % run) * step);
	}
}

/* As dma-buf's system heap allocates: by bytes, 75 %, 19 % and 6 %. */
static void mixed_make(void **array, uint64_t nr)
{
	uint64_t large = nr / 4 * 3 & ~255ULL, middle = nr / 16 * 3 & ~15ULL;
	uint64_t span = VMAP_NEAR;

	runs_make(array, large, 8, span);
	runs_make(array + large, middle, 4, span);
	runs_make(array + large + middle, nr - large - middle, 0, span);
}

/* Contiguous blocks of the buddy allocator. */
static void adjacent_make(void **array, uint64_t nr)
{
	uint64_t first = random_next() % (VMAP_NEAR - nr) & ~(VMAP_BLOCK - 1);
	uint64_t i;

	for (i = 0; i < nr; i++)
		array[i] = page_of(first + i);
}

static uint64_t any_place(uint64_t run)
{
	switch (random_next() % 8) {
	case 0: /* across the end of a section */
		return (random_next() % 500 + 1) * PAGES_SECTION - run / 2;
	case 1:
		return LATE + random_next() % (PAGES_SECTION - run);
	case 2: /* within a subsection that exists */
		return PARTIAL + random_next() % 32 * 1024 +
		       random_next() % (VMAP_BLOCK - run % VMAP_BLOCK);
	default:
		return random_next() % (VMAP_SPAN - run);
	}
}

/*
 * Runs of any length up to @order, from anywhere; some are aligned like the
 * page where the array is mapped, @at.
 */
static void any_make(void **array, uint64_t nr, unsigned int order, uint64_t at)
{
	uint64_t i = 0, run, place, k;

	while (i < nr) {
		run = 1ULL << random_next() % (order + 1);
		run = random_next() % 4 ? run : 1 + random_next() % run;
		place = any_place(run);
		if (random_next() % 2 && place < VMAP_SPAN - 2 * VMAP_BLOCK)
			place = (place & ~(VMAP_BLOCK - 1)) +
				(at + i) % VMAP_BLOCK;
		for (k = 0; k < run && i < nr; k++)
			array[i++] = page_of(place + k);
	}
}

/* Something in place of a page: not a page, or an unusual one. */
static void *odd_make(enum odd odd)
{
	switch (odd) {
	case ODD_NULL:
		return NULL;
	case ODD_ABSENT:
		return page_of(ABSENT + random_next() % PAGES_SECTION);
	case ODD_PARTIAL:
		return page_of(PARTIAL + VMAP_BLOCK +
			       random_next() % VMAP_BLOCK);
	case ODD_WILD:
		return (void *)random_next();
	default:
		return (char *)page_of(random_next() % VMAP_SPAN) + 8;
	}
}

/* Fills the array of a scenario. */
void vmap_enter(const struct scenario *s)
{
	const uint64_t *v = s->value;

	if (v[ENTRY] == RANGE)
		return;
	switch ((enum shape)s->kind) {
	case MIXED:
		mixed_make(vmap_array, s->pages);
		break;
	case ADJACENT:
		adjacent_make(vmap_array, s->pages);
		break;
	case ANY:
		random_seed(v[SEED]);
		any_make(vmap_array, s->pages, (unsigned int)v[ORDER],
			 v[AT_PAGE]);
		if (v[ODD] && v[ODD] != ODD_TAKEN)
			vmap_array[v[ODD_AT]] = odd_make((enum odd)v[ODD]);
		break;
	default:
		runs_make(vmap_array, s->pages, (unsigned int)v[ORDER],
			  s->kind == FAR ? VMAP_SPAN : VMAP_NEAR);
	}
}
