/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_VMAP_H
#define BMM_VMAP_H

#include "path.h"

struct vm_struct;

extern struct bmm_path bmm_vmap;

void bmm_vmap_init(void);

/* Thresholds and entries of the four hooks (trampolines.S). */
extern unsigned long bmm_vmap_pages_threshold;
extern unsigned long bmm_vmap_range_threshold;
extern unsigned long bmm_vmap_huge_threshold;
extern unsigned long bmm_vmap_area_threshold;

void bmm_vmap_pages_trampoline(void);
void bmm_vmap_range_trampoline(void);
void bmm_vmap_huge_trampoline(void);
void bmm_vmap_area_trampoline(void);

int bmm_vmap_pages_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			   struct page **pages);
int bmm_vmap_range_handler(unsigned long addr, unsigned long end,
			   phys_addr_t phys, pgprot_t prot,
			   unsigned int max_page_shift);
int bmm_vmap_huge_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			  struct page **pages, unsigned int page_shift);
struct vm_struct *bmm_vmap_area_handler(unsigned long size, unsigned long flags,
					const void *caller);

#endif
