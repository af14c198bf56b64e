/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, one per ranged operation: bulkmm:memmap, bulkmm:clear,
 * bulkmm:vmap.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bulkmm

/* clang-format off: TRACE_EVENT() has a style of its own */
#if !defined(BMM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define BMM_TRACE_H

#include <linux/tracepoint.h>

#include "vmap_map.h"

/*
 * One memmap_init_zone_device() served: nr_pages PFNs from start_pfn; bytes
 * stamped, not including the learned units; time of the whole call.
 */
TRACE_EVENT(
	memmap,
	TP_PROTO(unsigned long start_pfn, unsigned long nr_pages,
		 unsigned int order, u64 bytes, u64 ns, const char *backend),
	TP_ARGS(start_pfn, nr_pages, order, bytes, ns, backend),
	TP_STRUCT__entry(__field(unsigned long,
				 start_pfn) __field(unsigned long, nr_pages)
				 __field(unsigned int, order)
					 __field(u64, bytes) __field(u64, ns)
						 __string(backend, backend)),
	TP_fast_assign(__entry->start_pfn = start_pfn;
		       __entry->nr_pages = nr_pages; __entry->order = order;
		       __entry->bytes = bytes; __entry->ns = ns;
		       __assign_str(backend);),
	TP_printk("start_pfn=0x%lx nr_pages=%lu order=%u bytes=%llu ns=%llu backend=%s",
		  __entry->start_pfn, __entry->nr_pages, __entry->order,
		  __entry->bytes, __entry->ns, __get_str(backend)));

/*
 * One folio_zero_user() served: unit is the most bytes, gap the longest time
 * between two chances to reschedule (0 on a preemptible kernel); streaming says
 * whether it bypassed the cache.
 */
TRACE_EVENT(
	clear,
	TP_PROTO(unsigned long pfn, unsigned int order, u64 bytes, u64 ns,
		 u64 unit, u64 gap, bool streaming, const char *backend),
	TP_ARGS(pfn, order, bytes, ns, unit, gap, streaming, backend),
	TP_STRUCT__entry(
		__field(unsigned long, pfn) __field(unsigned int, order)
			__field(u64, bytes) __field(u64, ns) __field(u64, unit)
				__field(u64, gap) __field(bool, streaming)
					__string(backend, backend)),
	TP_fast_assign(__entry->pfn = pfn; __entry->order = order;
		       __entry->bytes = bytes; __entry->ns = ns;
		       __entry->unit = unit; __entry->gap = gap;
		       __entry->streaming = streaming; __assign_str(backend);),
	TP_printk("pfn=0x%lx order=%u bytes=%llu ns=%llu unit=%llu gap=%llu streaming=%d backend=%s",
		  __entry->pfn, __entry->order, __entry->bytes, __entry->ns,
		  __entry->unit, __entry->gap, __entry->streaming,
		  __get_str(backend)));

/*
 * One range of kernel addresses mapped: nr_pages from addr, in this many
 * contiguous runs, with this many entries of PAGE_SIZE, contpte groups and
 * entries of PMD_SIZE.
 */
TRACE_EVENT(
	vmap,
	TP_PROTO(const struct bmm_mapping *map, unsigned long addr,
		 unsigned long nr_pages, u64 ns),
	TP_ARGS(map, addr, nr_pages, ns),
	TP_STRUCT__entry(__field(unsigned long, addr) __field(unsigned long,
							      nr_pages)
				 __field(unsigned long,
					 runs) __field(unsigned long, small)
					 __field(unsigned long, groups)
						 __field(unsigned long, leaves)
							 __field(u64, ns)),
	TP_fast_assign(__entry->addr = addr; __entry->nr_pages = nr_pages;
		       __entry->runs = map->runs; __entry->small = map->small;
		       __entry->groups = map->groups;
		       __entry->leaves = map->leaves; __entry->ns = ns;),
	TP_printk(
		"addr=0x%lx nr_pages=%lu runs=%lu small=%lu groups=%lu leaves=%lu ns=%llu",
		__entry->addr, __entry->nr_pages, __entry->runs, __entry->small,
		__entry->groups, __entry->leaves, __entry->ns));

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
