// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Transparent huge pages that cannot be had. Where memory is fragmented, and
 * the program has asked for them (MADV_HUGEPAGE), the kernel compacts memory
 * for each, in vain, and then takes small pages: that takes many times as long
 * as small pages do, for nothing. So what slices got is counted, and the kernel
 * is asked what it did; if it has compacted or freed memory in vain for most,
 * the rest of the mapping is advised to have small pages, until the call ends.
 * Only where MADV_HUGEPAGE had been set: no other advice can be restored.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define LOOK_AFTER \
	(128 * MIB) /* between questions after slices that are quick */

static bool advise(const struct small *small, int advice)
{
	return !syscall(SYS_madvise, small->from, small->to - small->from,
			advice);
}

/* Whether a line begins a mapping, and which. */
static bool begins(const char *line, uintptr_t *from, uintptr_t *to)
{
	char *end;

	*from = strtoul(line, &end, 16);
	if (end == line || *end != '-')
		return false;
	*to = strtoul(end + 1, &end, 16);
	return *end == ' ';
}

/*
 * Whether an address is advised to have huge pages; @end is that of its
 * mapping. Not inline, and no sscanf(): a thread may have a stack of 16 KiB.
 */
__attribute__((noinline)) static bool is_advised(uintptr_t addr, uintptr_t *end)
{
	uintptr_t from, to;
	bool in = false, advised = false;
	struct maps smaps;
	char line[128];

	if (!lines_open(&smaps, "/proc/self/smaps"))
		return false;
	while (!advised && lines_next(&smaps, line, sizeof(line))) {
		if (begins(line, &from, &to)) {
			in = from <= addr && addr < to;
			*end = to;
			if (from > addr)
				break;
		} else if (in && !strncmp(line, "VmFlags:", 8)) {
			advised = strstr(line, " hg");
		}
	}
	maps_close(&smaps);
	return advised;
}

static void give_up(struct workers *workers, struct segment *segment)
{
	struct small small;
	uintptr_t end;

	pthread_mutex_lock(&workers->lock);
	segment->settled = true;
	small = (struct small){ segment->next, segment->end };
	pthread_mutex_unlock(&workers->lock);
	if (small.from >= small.to || !is_advised(small.from, &end))
		return;
	if (end < small.to)
		small.to = end;
	if (!advise(&small, MADV_NOHUGEPAGE))
		return;
	pthread_mutex_lock(&workers->lock);
	segment->small = small;
	pthread_mutex_unlock(&workers->lock);
}

/*
 * Whether the kernel has compacted or freed memory in vain, once or more for
 * each huge page that is missing: cheap failures, which it puts off itself, are
 * none. Where @missing is not known, its own count is used.
 */
static bool was_in_vain(struct pressure *last, size_t missing)
{
	struct pressure before = *last;
	size_t got;

	pressure_read(last);
	got = last->huge - before.huge;
	if (!missing) {
		missing = last->small - before.small;
		if (missing <= got)
			return false;
	}
	return last->failures - before.failures + last->stalls - before.stalls >=
	       missing;
}

/*
 * Whether the kernel is to be asked, by this thread, after a slice that took so
 * long; the count begins anew.
 */
static bool is_due(struct workers *workers, const struct segment *segment,
		   uint64_t ns, size_t *missing)
{
	bool due;

	pthread_mutex_lock(&workers->lock);
	workers->missing += *missing;
	due = !segment->settled && !workers->asking &&
	      (ns >= SLOW_NS || workers->report.done >= workers->ask_at);
	if (due) {
		*missing = workers->missing;
		workers->missing = 0;
		workers->asking = true;
	}
	pthread_mutex_unlock(&workers->lock);
	return due;
}

static void ask_kernel(struct workers *workers, struct segment *segment,
		       uint64_t ns, size_t missing)
{
	if (!is_due(workers, segment, ns, &missing))
		return;
	if (was_in_vain(&workers->asked, missing))
		give_up(workers, segment);
	pthread_mutex_lock(&workers->lock);
	workers->ask_at = workers->report.done + LOOK_AFTER;
	if (segment->settled) /* another one may be as bad */
		workers->ask_at = 0;
	workers->asking = false;
	pthread_mutex_unlock(&workers->lock);
}

/**
 * watch_huge_pages() - count the huge pages of a slice, and give up if need be
 * @workers: the workers, not locked
 * @slice:   has been populated
 * @ns:      time that took
 *
 * Return: its bytes that are in huge pages; 0 if the kernel does not tell.
 */
size_t watch_huge_pages(struct workers *workers, const struct slice *slice,
			uint64_t ns)
{
	struct segment *segment = slice->segment;
	size_t huge = workers->huge, blocks = 0, there = 0;
	uintptr_t at = (slice->from + huge - 1) & -huge;
	int is = 1;

	if (workers->len < SMALL)
		return 0;
	if (segment->map.page > (size_t)sysconf(_SC_PAGESIZE))
		return slice->to - slice->from;
	for (; at < slice->to && slice->to - at >= huge; at += huge) {
		blocks++;
		if (is >= 0)
			is = pages_huge(&workers->pages, at);
		there += is > 0;
	}
	if (2 * there < blocks && !(workers->options.flags & BMM_COMPACT) &&
	    segment->map.flags & (ANONYMOUS | UNWATCHED))
		ask_kernel(workers, segment, ns, is < 0 ? 0 : blocks - there);
	return there * huge;
}

/* What was advised is as it was; counts what has got small pages. */
void restore_huge_pages(struct workers *workers)
{
	struct segment *segment = workers->segments, *end;
	uintptr_t to;

	for (end = segment + workers->segments_nr; segment < end; segment++) {
		if (!segment->small.to)
			continue;
		advise(&segment->small, MADV_HUGEPAGE);
		to = segment->next < segment->small.to ? segment->next :
							 segment->small.to;
		workers->report.small += to - segment->small.from;
	}
}
