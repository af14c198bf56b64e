/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internals of vmap: its scenarios, the memory that is mapped and arrays of its
 * pages, the page table entries.
 */
#ifndef NATIVE_VMAP_H
#define NATIVE_VMAP_H

#include "native.h"

#define VMAP_START 0x100000ULL	/* PFN of the first page that is mapped */
#define VMAP_SPAN  (1ULL << 24) /* pages to choose from: 64 GiB */
#define VMAP_NEAR  (1ULL << 18) /* of a scenario with pages close together */
#define VMAP_BLOCK 512ULL	/* pages of an entry of 2 MiB */
#define VMAP_ARRAY 25600ULL	/* pages of most scenarios: 100 MiB */
#define VMAP_MOST  262144ULL	/* pages of the largest range: 1 GiB */
#define ENTRIES	   512ULL	/* of a table */
#define TABLES	   52ULL	/* mappings may start inside one */
#define LEAF	   0x80ULL	/* _PAGE_PSE; in a small entry: PAT */

#define VMAP_KERNEL 0x8000000000000163ULL /* PAGE_KERNEL */
#define VMAP_PROTS  7

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
	PROT,	  /* index of vmap_prots[] */
	SHIFT,	  /* of the largest entry allowed */
	PHYSICAL, /* first page of a range */
	FIELDS,
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

/* What in an array only the kernel's own function can handle. */
enum odd {
	ODD_NONE,
	ODD_NULL,
	ODD_ABSENT,  /* in a section that does not exist */
	ODD_PARTIAL, /* in a subsection that does not exist */
	ODD_WILD,    /* not a struct page at all */
	ODD_CROOKED, /* an address inside a struct page */
	ODD_TAKEN,   /* its place is already mapped */
	ODDS
};

/* Struct page of the first page; bytes of one, as a power of two. */
extern char *vmap_pages;
extern unsigned int vmap_record_bits;

static inline uint64_t vmap_pfn(const void *page)
{
	uint64_t at = (uint64_t)((const char *)page - vmap_pages);

	return VMAP_START + (at >> vmap_record_bits);
}

/* The pages that are mapped; page table entries: of 2 MiB, of 4 KiB. */
extern void **vmap_array;
extern uint64_t *vmap_middle, *vmap_tables;

/* The entry that a scenario writes for its i-th page. */
static inline uint64_t vmap_value(const struct scenario *s, uint64_t i)
{
	if (s->value[ENTRY] == RANGE)
		return (VMAP_START + s->value[PHYSICAL] +
			i % s->pages_per_call) *
			       PAGE |
		       VMAP_KERNEL;
	return vmap_pfn(vmap_array[i]) * PAGE | VMAP_KERNEL;
}

/* vmap_job.c */
extern const uint64_t vmap_prots[VMAP_PROTS];
extern const char *const vmap_fields[];
extern const struct mode vmap_modes[];
unsigned int vmap_jobs(struct scenario *list);
void vmap_draw(uint64_t *v);
bool vmap_build(struct scenario *s, const uint64_t *v);

/* vmap_array.c */
void vmap_pages_make(void);
void vmap_enter(const struct scenario *s);

#endif
