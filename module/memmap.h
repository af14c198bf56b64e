/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memmap.h - one request
 *
 * memmap.c decides what the kernel builds and learns from that, memmap_stamp.c
 * writes the rest, memmap_verify.c compares.
 */
#ifndef BMM_MEMMAP_H
#define BMM_MEMMAP_H

#include <linux/mm.h>

#include "../core/learn.h"
#include "control.h"

/*
 * struct memmap_request - one request, as the original would see it
 * @zone, @start_pfn, @pgmap: its arguments
 * @pfn:   first PFN with a struct page to build (after an altmap, if any)
 * @end:   one past the last
 * @order: compound order; a unit is 1 << order PFNs
 * @units: units in the range
 * @learned_units: units at its start that the original builds
 * @last_units: units at its end that the original builds
 * @geometry: how the units lie in the memmap
 * @backend: that stamped it
 * @verified: the kernel's function wrote the same
 * @wrong_pfn: PFN of struct pages that are not as predicted, or not as stamped
 */
struct memmap_request {
	struct zone *zone;
	struct dev_pagemap *pgmap;
	unsigned long start_pfn;
	unsigned long pfn;
	unsigned long end;
	unsigned int order;
	unsigned long units;
	unsigned long learned_units;
	unsigned long last_units;
	struct bmm_geometry geometry;
	const struct bmm_backend *backend;
	bool verified;
	unsigned long wrong_pfn;
};

enum {
	BMM_MEMMAP_SHARED = BMM_OWN, /* bytes stamped by others than the caller */
	BMM_MEMMAP_VERIFIED,	     /* requests */
};

static inline void *memmap_first_page(const struct memmap_request *req)
{
	return pfn_to_page(req->pfn);
}

extern struct bmm_tunable bmm_memmap_workers_file;
extern struct kobj_attribute bmm_memmap_verify_file;

u64 bmm_memmap_bytes(const struct memmap_request *req, unsigned long units);
const struct bmm_backend *bmm_memmap_stamp(const struct memmap_request *req,
					   struct bmm_layout *layout);
bool bmm_memmap_verify_failed(void);
bool bmm_memmap_verify_due(const struct memmap_request *req);
u64 *bmm_memmap_sums(const struct memmap_request *req);
bool bmm_memmap_differs(struct memmap_request *req, const u64 *sums);

#endif
