/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_MEMMAP_H
#define BMM_MEMMAP_H

#include "path.h"

struct dev_pagemap;
struct zone;

extern struct bmm_path bmm_memmap;

void bmm_memmap_init(void);

/* Shared with the trampoline (trampolines.S). */
extern unsigned long bmm_memmap_threshold;
void bmm_memmap_trampoline(void);
void bmm_memmap_handler(struct zone *zone, unsigned long start_pfn,
			unsigned long nr_pages, struct dev_pagemap *pgmap);

#endif
