/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals of memmap: its devices. */
#ifndef NATIVE_MEMMAP_H
#define NATIVE_MEMMAP_H

#include "native.h"

#define MEMMAP_START 0x100000ULL /* the first PFN, at 4 GiB */
#define MEMMAP_NODES 64ULL
#define ORDER_2M     9
#define ORDER_1G     18
#define PAGES_2M     (1ULL << ORDER_2M)

/* Defines a device; a case of the fuzzer gives all of these. */
enum field {
	TYPE,	    /* enum type */
	ORDER,	    /* vmemmap_shift */
	FROM,	    /* first PFN, counted from MEMMAP_START */
	PAGES,	    /* PFNs, the device's own included */
	HAS_ALTMAP, /* whether struct pages are on the device (map=dev) */
	RESERVE,    /* PFNs for the driver */
	FREE,	    /* PFNs for struct pages */
	NODE,	    /* of the zone */
	EARLY,	    /* first section present at boot, from there */
	EARLY_NR,   /* how many are present at boot */
	SMALL,	    /* memmap_min_pages; 0: the module's default */
	COLD,	    /* whether no cache has the struct pages */
	ODD,	    /* 1: the kernel makes the last struct page differ */
	FIELDS,
};

enum type {
	FS_DAX,
	GENERIC,
	PRIVATE,
	TYPES = 5
};

/* Bytes of a struct page; pages of the largest device. */
extern uint64_t memmap_record, memmap_pages;

/* memmap_device.c */
extern const char *const memmap_fields[];
extern const struct mode memmap_modes[];
bool memmap_is_early(const uint64_t *v, uint64_t pfn);
uint64_t memmap_unit_pages(const uint64_t *v, uint64_t pfn);
unsigned int memmap_devices(struct scenario *list, uint64_t size);
void memmap_draw(uint64_t *v);
bool memmap_build(struct scenario *s, const uint64_t *v);

/* memmap_template.c */
const char *const *memmap_peers(uint64_t order);
void memmap_template(char *page, const struct scenario *s, unsigned int peer);

/* memmap.c */
char *memmap_pageblock(void);

#endif
