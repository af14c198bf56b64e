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
 * An event, whose fields BMM_TRACE_NAME() lists: NUM(type, name, as it is
 * printed, value) or STR(the same without a type).
 */
#define BMM_EVENT(name, proto, args)                                          \
	TRACE_EVENT(name, PARAMS(proto), PARAMS(args),                        \
		TP_STRUCT__entry(BMM_TRACE_##name(BMM_FIELD, BMM_STRING)),    \
		TP_fast_assign(BMM_TRACE_##name(BMM_ASSIGN, BMM_ASSIGN_STR)), \
		BMM_PRINTK(BMM_TRACE_##name(BMM_FORMAT, BMM_FORMAT_STR)       \
			   BMM_TRACE_##name(BMM_VALUE, BMM_VALUE_STR)))

#define BMM_FIELD(type, name, format, value)  __field(type, name)
#define BMM_STRING(name, format, value)	      __string(name, value)
#define BMM_ASSIGN(type, name, format, value) __entry->name = value;
#define BMM_ASSIGN_STR(name, format, value)   bmm_assign_str(name, value);
#define BMM_FORMAT(type, name, format, value) format
#define BMM_FORMAT_STR(name, format, value)   format
#define BMM_VALUE(type, name, format, value)  , __entry->name
#define BMM_VALUE_STR(name, format, value)    , __get_str(name)
#define BMM_PRINTK(...)			      TP_printk(__VA_ARGS__)

/*
 * One memmap_init_zone_device(): nr_pages PFNs from start_pfn; bytes stamped,
 * not including the learned units; time of the whole call; result is "served",
 * "verified", or the reason for which the kernel's function served.
 */
#define BMM_TRACE_memmap(NUM, STR)                                            \
	NUM(unsigned long, start_pfn, "start_pfn=0x%lx", b->pfn)              \
	NUM(unsigned long, nr_pages, " nr_pages=%lu", b->end - b->pfn)        \
	NUM(unsigned int, order, " order=%u", b->order)                       \
	NUM(u64, bytes, " bytes=%llu", bytes)                                 \
	NUM(u64, ns, " ns=%llu", ns)                                          \
	STR(backend, " backend=%s", b->backend ? b->backend->name : "none")   \
	STR(result, " result=%s", result)
BMM_EVENT(memmap,
	TP_PROTO(const struct bringup *b, u64 bytes, u64 ns, const char *result),
	TP_ARGS(b, bytes, ns, result));

/*
 * One folio_zero_user() served: unit is the most bytes, gap the longest time
 * between two chances to reschedule (of one extent where the kernel preempts);
 * streaming says whether it bypassed the cache.
 */
#define BMM_TRACE_clear(NUM, STR)                                             \
	NUM(unsigned long, pfn, "pfn=0x%lx", pfn)                             \
	NUM(unsigned int, order, " order=%u", order)                          \
	NUM(u64, bytes, " bytes=%llu", bytes)                                 \
	NUM(u64, ns, " ns=%llu", ns)                                          \
	NUM(u64, unit, " unit=%llu", unit)                                    \
	NUM(u64, gap, " gap=%llu", gap)                                       \
	NUM(bool, streaming, " streaming=%d", streaming)                      \
	STR(backend, " backend=%s", backend)
BMM_EVENT(clear,
	TP_PROTO(unsigned long pfn, unsigned int order, u64 bytes, u64 ns,
		 u64 unit, u64 gap, bool streaming, const char *backend),
	TP_ARGS(pfn, order, bytes, ns, unit, gap, streaming, backend));

/* One copy_user_large_folio(): whether the copy got to its end. */
#define BMM_TRACE_copy(NUM, STR)                                              \
	NUM(unsigned long, pfn, "pfn=0x%lx", folio_pfn(dst))                  \
	NUM(unsigned long, src_pfn, " src_pfn=0x%lx", folio_pfn(src))         \
	NUM(unsigned int, order, " order=%u", folio_order(dst))               \
	NUM(u64, ns, " ns=%llu", ns)                                          \
	NUM(bool, whole, " whole=%d", whole)
BMM_EVENT(copy,
	TP_PROTO(struct folio *dst, struct folio *src, u64 ns, bool whole),
	TP_ARGS(dst, src, ns, whole));

/* One hugetlb page: "zeroed" ahead of use, or "served" without a clearing. */
#define BMM_TRACE_prezero(NUM, STR)                                           \
	NUM(unsigned long, pfn, "pfn=0x%lx", pfn)                             \
	NUM(unsigned int, order, " order=%u", order)                          \
	STR(what, " %s", what)
BMM_EVENT(prezero,
	TP_PROTO(unsigned long pfn, unsigned int order, const char *what),
	TP_ARGS(pfn, order, what));

/*
 * One request of the page allocator served: nr_pages from pfn; streaming says
 * whether they bypassed the cache.
 */
#define BMM_TRACE_alloc(NUM, STR)                                             \
	NUM(unsigned long, pfn, "pfn=0x%lx", pfn)                             \
	NUM(unsigned long, nr_pages, " nr_pages=%lu", nr_pages)               \
	NUM(u64, ns, " ns=%llu", ns)                                          \
	NUM(bool, streaming, " streaming=%d", streaming)
BMM_EVENT(alloc,
	TP_PROTO(unsigned long pfn, unsigned long nr_pages, u64 ns,
		 bool streaming),
	TP_ARGS(pfn, nr_pages, ns, streaming));

/*
 * One range of kernel addresses mapped: nr_pages from addr, in this many
 * contiguous runs, with this many entries of PAGE_SIZE, contpte groups and
 * entries of PMD_SIZE.
 */
#define BMM_TRACE_vmap(NUM, STR)                                              \
	NUM(unsigned long, addr, "addr=0x%lx", addr)                          \
	NUM(unsigned long, nr_pages, " nr_pages=%lu", nr_pages)               \
	NUM(unsigned long, runs, " runs=%lu", map->runs)                      \
	NUM(unsigned long, small, " small=%lu", map->small)                   \
	NUM(unsigned long, groups, " groups=%lu", map->groups)                \
	NUM(unsigned long, leaves, " leaves=%lu", map->leaves)                \
	NUM(u64, ns, " ns=%llu", ns)
BMM_EVENT(vmap,
	TP_PROTO(const struct bmm_mapping *map, unsigned long addr,
		 unsigned long nr_pages, u64 ns),
	TP_ARGS(map, addr, nr_pages, ns));

/*
 * One set_zone_contiguous(): nr_pages PFNs from start_pfn joined the zone or
 * left it (0: not known which); the zone's span; result is "served", or the
 * reason for which the kernel walked over the zone.
 */
#define BMM_TRACE_hotplug(NUM, STR)                                           \
	NUM(unsigned long, start_pfn, "start_pfn=0x%lx", change->start)       \
	NUM(unsigned long, nr_pages, " nr_pages=%lu",                         \
	    change->end - change->start)                                      \
	NUM(unsigned long, zone_start_pfn, " zone_start_pfn=0x%lx",           \
	    walk->start)                                                      \
	NUM(unsigned long, zone_pages, " zone_pages=%lu",                     \
	    walk->end - walk->start)                                          \
	NUM(u64, ns, " ns=%llu", ns)                                          \
	STR(result, " result=%s", result)
BMM_EVENT(hotplug,
	TP_PROTO(const struct bmm_walk_change *change,
		 const struct bmm_walk *walk, u64 ns, const char *result),
	TP_ARGS(change, walk, ns, result));

/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
