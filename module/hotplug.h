/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_HOTPLUG_H
#define BMM_HOTPLUG_H

#include "compat/compat.h"
#include "path.h"

struct zone;

extern struct bmm_path bmm_hotplug;
extern unsigned long bmm_hotplug_threshold;
extern unsigned long bmm_hotplug_grow_threshold;
extern unsigned long bmm_hotplug_shrink_threshold;

void bmm_hotplug_trampoline(void);
void bmm_hotplug_grow_trampoline(void);
void bmm_hotplug_shrink_trampoline(void);

void bmm_hotplug_handler(struct zone *zone);
void bmm_hotplug_grow_handler(struct zone *zone, unsigned long start_pfn,
			      unsigned long nr_pages, struct vmem_altmap *altmap,
			      int type BMM_GROW_ISOLATE);
void bmm_hotplug_shrink_handler(struct zone *zone, unsigned long start_pfn,
				unsigned long nr_pages);

#endif
