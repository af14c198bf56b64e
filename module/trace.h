/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, one per request: bulkmm:memmap and bulkmm:hotplug whoever
 * served it, bulkmm:clear, bulkmm:prezero, bulkmm:copy, bulkmm:alloc and
 * bulkmm:vmap if a path did.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bulkmm

#if !defined(BMM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define BMM_TRACE_H

#include <linux/tracepoint.h>

#include "compat/compat.h"
#include "hotplug_walk.h"
#include "memmap.h"
#include "vmap_map.h"

/* clang-format off */

/*
 * One memmap_init_zone_device(): nr_pages PFNs from start_pfn; bytes stamped,
 * not including the learned units; time of the whole call; result is "served",
 * "verified", or the reason for which the kernel's function served.
 */
TRACE_EVENT(memmap,

	TP_PROTO(const struct memmap_request *req, u64 bytes, u64 ns, const char *result),

	TP_ARGS(req, bytes, ns, result),

	TP_STRUCT__entry(
		__field(unsigned long, start_pfn)
		__field(unsigned long, nr_pages)
		__field(unsigned int, order)
		__field(u64, bytes)
		__field(u64, ns)
		__string(backend, req->backend ? req->backend->name : "none")
		__string(result, result)
	),

	TP_fast_assign(
		__entry->start_pfn = req->pfn;
		__entry->nr_pages = req->end - req->pfn;
		__entry->order = req->order;
		__entry->bytes = bytes;
		__entry->ns = ns;
		bmm_assign_str(backend, req->backend ? req->backend->name : "none");
		bmm_assign_str(result, result);
	),

	TP_printk("start_pfn=0x%lx nr_pages=%lu order=%u bytes=%llu ns=%llu backend=%s result=%s",
		__entry->start_pfn, __entry->nr_pages, __entry->order,
		__entry->bytes, __entry->ns, __get_str(backend),
		__get_str(result))
);

/*
 * One folio_zero_user() served: unit is the most bytes, gap the longest time
 * between two chances to reschedule (of one extent where the kernel preempts);
 * streaming says whether it bypassed the cache.
 */
TRACE_EVENT(clear,

	TP_PROTO(unsigned long pfn, unsigned int order, u64 bytes, u64 ns,
		 u64 unit, u64 gap, bool streaming, const char *backend),

	TP_ARGS(pfn, order, bytes, ns, unit, gap, streaming, backend),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, order)
		__field(u64, bytes)
		__field(u64, ns)
		__field(u64, unit)
		__field(u64, gap)
		__field(bool, streaming)
		__string(backend, backend)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->order = order;
		__entry->bytes = bytes;
		__entry->ns = ns;
		__entry->unit = unit;
		__entry->gap = gap;
		__entry->streaming = streaming;
		bmm_assign_str(backend, backend);
	),

	TP_printk("pfn=0x%lx order=%u bytes=%llu ns=%llu unit=%llu gap=%llu streaming=%d backend=%s",
		__entry->pfn, __entry->order, __entry->bytes, __entry->ns,
		__entry->unit, __entry->gap, __entry->streaming,
		__get_str(backend))
);

/* One copy_user_large_folio(): whether the copy got to its end. */
TRACE_EVENT(copy,

	TP_PROTO(struct folio *dst, struct folio *src, u64 ns,
		 bool whole),

	TP_ARGS(dst, src, ns, whole),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned long, src_pfn)
		__field(unsigned int, order)
		__field(u64, ns)
		__field(bool, whole)
	),

	TP_fast_assign(
		__entry->pfn = folio_pfn(dst);
		__entry->src_pfn = folio_pfn(src);
		__entry->order = folio_order(dst);
		__entry->ns = ns;
		__entry->whole = whole;
	),

	TP_printk("pfn=0x%lx src_pfn=0x%lx order=%u ns=%llu whole=%d",
		__entry->pfn, __entry->src_pfn, __entry->order, __entry->ns,
		__entry->whole)
);

/* One hugetlb page: "zeroed" ahead of use, or "served" without a clearing. */
TRACE_EVENT(prezero,

	TP_PROTO(unsigned long pfn, unsigned int order, const char *what),

	TP_ARGS(pfn, order, what),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, order)
		__string(what, what)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->order = order;
		bmm_assign_str(what, what);
	),

	TP_printk("pfn=0x%lx order=%u %s", __entry->pfn, __entry->order,
		__get_str(what))
);

/*
 * One request of the page allocator served: nr_pages from pfn; streaming says
 * whether they bypassed the cache.
 */
TRACE_EVENT(alloc,

	TP_PROTO(unsigned long pfn, unsigned long nr_pages, u64 ns,
		 bool streaming),

	TP_ARGS(pfn, nr_pages, ns, streaming),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned long, nr_pages)
		__field(u64, ns)
		__field(bool, streaming)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->nr_pages = nr_pages;
		__entry->ns = ns;
		__entry->streaming = streaming;
	),

	TP_printk("pfn=0x%lx nr_pages=%lu ns=%llu streaming=%d",
		__entry->pfn, __entry->nr_pages, __entry->ns,
		__entry->streaming)
);

/*
 * One range of kernel addresses mapped: nr_pages from addr, in this many
 * contiguous runs, with this many entries of PAGE_SIZE, contpte groups and
 * entries of PMD_SIZE.
 */
TRACE_EVENT(vmap,

	TP_PROTO(const struct bmm_mapping *map, unsigned long addr,
		 unsigned long nr_pages, u64 ns),

	TP_ARGS(map, addr, nr_pages, ns),

	TP_STRUCT__entry(
		__field(unsigned long, addr)
		__field(unsigned long, nr_pages)
		__field(unsigned long, runs)
		__field(unsigned long, small)
		__field(unsigned long, groups)
		__field(unsigned long, leaves)
		__field(u64, ns)
	),

	TP_fast_assign(
		__entry->addr = addr;
		__entry->nr_pages = nr_pages;
		__entry->runs = map->runs;
		__entry->small = map->small;
		__entry->groups = map->groups;
		__entry->leaves = map->leaves;
		__entry->ns = ns;
	),

	TP_printk("addr=0x%lx nr_pages=%lu runs=%lu small=%lu groups=%lu leaves=%lu ns=%llu",
		__entry->addr, __entry->nr_pages, __entry->runs,
		__entry->small, __entry->groups, __entry->leaves, __entry->ns)
);

/*
 * One set_zone_contiguous(): nr_pages PFNs from start_pfn joined the zone or
 * left it (0: not known which); the zone's span; result is "served", or the
 * reason for which the kernel walked over the zone.
 */
TRACE_EVENT(hotplug,

	TP_PROTO(const struct bmm_walk_change *change,
		 const struct bmm_walk *walk, u64 ns, const char *result),

	TP_ARGS(change, walk, ns, result),

	TP_STRUCT__entry(
		__field(unsigned long, start_pfn)
		__field(unsigned long, nr_pages)
		__field(unsigned long, zone_start_pfn)
		__field(unsigned long, zone_pages)
		__field(u64, ns)
		__string(result, result)
	),

	TP_fast_assign(
		__entry->start_pfn = change->start;
		__entry->nr_pages = change->end - change->start;
		__entry->zone_start_pfn = walk->start;
		__entry->zone_pages = walk->end - walk->start;
		__entry->ns = ns;
		bmm_assign_str(result, result);
	),

	TP_printk("start_pfn=0x%lx nr_pages=%lu zone_start_pfn=0x%lx zone_pages=%lu ns=%llu result=%s",
		__entry->start_pfn, __entry->nr_pages, __entry->zone_start_pfn,
		__entry->zone_pages, __entry->ns, __get_str(result))
);

/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
