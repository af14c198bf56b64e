/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes older kernels look like the newest. Each shim says which kernel changed
 * what; the probes are in probe.mk.
 */
#ifndef BMM_COMPAT_H
#define BMM_COMPAT_H

#include <linux/ftrace.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/workqueue.h>

/* Functions that 6.18 changed: paths.def. */
#ifdef BMM_HAVE_INIT_PAGEBLOCK
#define bmm_pageblock_args(page, type) page, type, false
#else
#define bmm_pageblock_args(page, type) page, type
#endif

/* 6.18 dropped the second argument, a pgmap to start searching from. */
static inline struct dev_pagemap *bmm_get_dev_pagemap(unsigned long pfn)
{
#ifdef BMM_HAVE_GET_DEV_PAGEMAP_PFN
	return get_dev_pagemap(pfn);
#else
	return get_dev_pagemap(pfn, NULL);
#endif
}

#ifdef BMM_HAVE_MOVE_ISOLATE
#define BMM_GROW_ISOLATE     , bool isolate
#define BMM_GROW_ISOLATE_ARG , isolate
#else
#define BMM_GROW_ISOLATE
#define BMM_GROW_ISOLATE_ARG
#endif

/*
 * 6.12's register_ftrace_direct() overwrites the flags. This is the only write
 * to those of a registered ops, and nobody else writes them then: ftrace
 * changes an ops's flags only when that ops is registered, unregistered or gets
 * another filter (kernel/trace/ftrace.c), which our callers serialise; its
 * reader, is_permanent_ops_registered(), sees the flag or does not.
 */
static inline void bmm_ops_permanent(struct ftrace_ops *ops)
{
	if (!(ops->flags & FTRACE_OPS_FL_PERMANENT))
		ops->flags |= FTRACE_OPS_FL_PERMANENT;
}

/* 6.17 renamed this work queue; 7.3 complains about the old name. */
#ifndef BMM_HAVE_DFL_WQ
#define system_dfl_wq system_unbound_wq
#endif

#endif
