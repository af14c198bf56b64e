/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals of vmap: the memory that is mapped, and arrays of its pages. */
#ifndef NATIVE_VMAP_H
#define NATIVE_VMAP_H

#include "native.h"

#define VMAP_START 0x100000ULL	/* PFN of the first page that is mapped */
#define VMAP_SPAN  (1ULL << 24) /* pages to choose from: 64 GiB */
#define VMAP_NEAR  (1ULL << 18) /* of a scenario with pages close together */
#define VMAP_BLOCK 512ULL	/* pages of an entry of 2 MiB */

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

/* vmap_array.c */
void vmap_pages_make(void);
void *vmap_page(uint64_t number);
void vmap_runs(void **array, uint64_t nr, unsigned int order, uint64_t span);
void vmap_mixed(void **array, uint64_t nr);
void vmap_adjacent(void **array, uint64_t nr);
void vmap_any(void **array, uint64_t nr, unsigned int order, uint64_t at);
void *vmap_odd(enum odd odd);

#endif
