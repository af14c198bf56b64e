/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_ALLOC_H
#define BMM_ALLOC_H

#include "path.h"

struct mhp_params;
struct page;

extern struct bmm_path bmm_alloc;

/* Shared with the trampoline (trampolines.S). */
extern unsigned long bmm_alloc_threshold;
extern unsigned long bmm_alloc_add_threshold;
void bmm_alloc_trampoline(void);
void bmm_alloc_add_trampoline(void);
void bmm_alloc_handler(struct page *page, int numpages);
int bmm_alloc_add_handler(int nid, unsigned long pfn, unsigned long nr_pages,
			  struct mhp_params *params);

#endif
