/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes older kernels look like the newest. Each shim says which kernel changed
 * what; the probes are in probe.mk.
 */
#ifndef BMM_COMPAT_H
#define BMM_COMPAT_H

#include <linux/ftrace.h>
#include <linux/kvm.h>
#include <linux/log2.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/page-isolation.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#ifdef CONFIG_X86_64
#include <asm/processor.h>
#endif

/* A function that changed between 6.12 and 7.3: paths.def. */
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
 * 6.4 renamed these, and gave the second an argument. They attach and detach
 * as 6.12's do (kernel/trace/ftrace.c, 6.1 and 6.12).
 */
#ifdef BMM_HAVE_DIRECT_MULTI
static inline int bmm_unregister_direct(struct ftrace_ops *ops,
					unsigned long address, bool free_filters)
{
	int err = unregister_ftrace_direct_multi(ops, address);

	if (free_filters)
		ftrace_free_filter(ops);
	return err;
}
#define register_ftrace_direct	 register_ftrace_direct_multi
#define unregister_ftrace_direct bmm_unregister_direct
#endif

/*
 * Up to 6.12 register_ftrace_direct() overwrites the flags. This is the only
 * write to those of a registered ops, and nobody else writes them then: ftrace
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

/*
 * 6.11 gave clear_huge_page() a folio, and a new name. What it had before was
 * the head page and the number of all pages (mm/memory.c, mm/hugetlb.c, 6.1).
 */
#ifdef BMM_HAVE_FOLIO_ZERO_USER
#define BMM_ZERO_USER	 folio_zero_user
#define BMM_CLEAR_PARAMS struct folio *folio, unsigned long addr_hint
#define BMM_CLEAR_FOLIO	 folio
#define BMM_CLEAR_ARGS(folio, addr_hint) folio, addr_hint
#else
#define BMM_ZERO_USER clear_huge_page
#define BMM_CLEAR_PARAMS \
	struct page *page, unsigned long addr_hint, unsigned int nr_pages
#define BMM_CLEAR_FOLIO page_folio(page)
#define BMM_CLEAR_ARGS(folio, addr_hint) \
	&(folio)->page, addr_hint, 1U << folio_order(folio)
#endif

/*
 * 6.1 passes the head pages of two hugetlb pages (mm/hugetlb.c) and their
 * number, and returns nothing: copying poison ends in a panic there.
 */
#ifdef BMM_HAVE_COPY_LARGE_FOLIO
#define BMM_COPY_HANDLER(handle)                                   \
	int bmm_copy_handler(struct folio *dst, struct folio *src, \
			     unsigned long addr_hint,              \
			     struct vm_area_struct *vma)           \
	{                                                          \
		return handle(dst, src, addr_hint, vma);           \
	}
#define bmm_copy_by_kernel(dst, src, addr_hint, vma) \
	static_call(bmm_copy_original)(dst, src, addr_hint, vma)
#else
#define BMM_COPY_HANDLER(handle)                                           \
	void bmm_copy_handler(struct page *dst, struct page *src,          \
			      unsigned long addr_hint,                     \
			      struct vm_area_struct *vma, unsigned int nr) \
	{                                                                  \
		handle(page_folio(dst), page_folio(src), addr_hint, vma);  \
	}
#define bmm_copy_by_kernel(dst, src, addr_hint, vma)                       \
	({                                                                 \
		static_call(bmm_copy_original)(&(dst)->page, &(src)->page, \
					       addr_hint, vma,             \
					       1U << folio_order(dst));    \
		0;                                                         \
	})
#endif

/* 6.10 dropped the second argument. */
#ifdef BMM_HAVE_ASSIGN_STR_ALONE
#define bmm_assign_str(field, text) __assign_str(field)
#else
#define bmm_assign_str(field, text) __assign_str(field, text)
#endif

/* 6.7 moved the CPU's place in the machine into cpuinfo_x86. */
#ifdef CONFIG_X86_64
static inline u32 bmm_llc_id(unsigned int cpu)
{
#ifdef BMM_HAVE_CPUINFO_TOPO
	return cpu_data(cpu).topo.llc_id;
#else
	return get_llc_id(cpu);
#endif
}
#endif

/* 6.1: a function that is not exported. */
#ifdef BMM_HAVE_ALTMAP_EXTERN
#define vmem_altmap_offset(altmap) ((altmap)->reserve + (altmap)->free)
#endif

/* 6.1 lacks it. */
#ifndef BMM_HAVE_NUMA_NEAREST
static inline int numa_nearest_node(int node, enum node_states state)
{
	int other, nearest = node;

	if (node == NUMA_NO_NODE || node_state(node, state))
		return node;
	for_each_node_state(other, state)
	{
		if (nearest == node ||
		    node_distance(node, other) < node_distance(node, nearest))
			nearest = other;
	}
	return nearest;
}
#endif

/* 6.1 lacks it: no 32-bit number of an ioctl() equals this one. */
#ifndef KVM_PRE_FAULT_MEMORY
#define KVM_PRE_FAULT_MEMORY U64_MAX
#endif

/* 6.1 lacks it: vhost's workers are kernel threads there. */
#ifndef PF_USER_WORKER
#define PF_USER_WORKER 0
#endif

/*
 * Up to 7.2 alloc_hugetlb_folio_nodemask() does not count the page that it
 * returns, and free_huge_folio() counts it down all the same (mm/hugetlb.c,
 * 7.2 and 7.3). 6.12 counts none.
 */
static inline void bmm_count_hugetlb(struct folio *folio)
{
#if defined(BMM_HAVE_NR_HUGETLB) && !defined(BMM_HAVE_HUGETLB_ALLOC)
	lruvec_stat_mod_folio(folio, NR_HUGETLB, folio_nr_pages(folio));
#endif
}

/* 6.1 has no such areas. */
#ifndef BMM_HAVE_VM_SPARSE
#define VM_SPARSE 0
#endif

/* 6.1 has MAX_ORDER, which is one more; others in between, the same. */
#ifndef MAX_PAGE_ORDER
#define MAX_PAGE_ORDER ilog2(MAX_ORDER_NR_PAGES)
#endif

#endif
