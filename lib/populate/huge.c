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

#define ASK_AFTER (128 * MIB) /* between questions, if slices are quick */

static bool advise(const struct small *small, int advice)
{
	return !syscall(SYS_madvise, small->from, small->to - small->from,
			advice);
}

/* Whether a line begins a mapping, and which. */
static bool begins(const char *line, uintptr_t *from, uintptr_t *to)
{
	uintptr_t first;
	char *end;

	first = strtoul(line, &end, 16);
	if (end == line || *end != '-')
		return false;
	*from = first;
	*to = strtoul(end + 1, &end, 16);
	return true;
}

/* Notes which of the segments that end in a mapping have huge pages advised. */
static struct segment *note_advice(struct segment *segment,
				   const struct segment *last, uintptr_t from,
				   uintptr_t to, bool advised)
{
	for (; segment < last && segment->end <= to; segment++)
		if (advised && segment->end > from)
			segment->advised = from;
	return segment;
}

/*
 * Finds out which segments are advised to have huge pages. Once for all: the
 * kernel walks the page tables of everything that is mapped below. Not inline,
 * and no sscanf(): a thread may have a stack of 16 KiB.
 */
__attribute__((noinline)) static void find_advice(struct workers *workers)
{
	struct segment *segment = workers->segments;
	struct segment *last = segment + workers->segments_nr;
	uintptr_t from = 0, to = 0;
	struct maps smaps;
	char line[128];

	if (!lines_open(&smaps, "/proc/self/smaps"))
		return;
	while (segment < last && lines_next(&smaps, line, sizeof(line))) {
		if (begins(line, &from, &to))
			segment = note_advice(segment, last, 0, from, false);
		else if (!strncmp(line, "VmFlags:", 8))
			segment = note_advice(segment, last, from, to,
					      strstr(line, " hg"));
	}
	maps_close(&smaps);
}

/* What is left of a segment, and whether small pages are advised there. */
static void note_small(struct workers *workers, struct segment *segment,
		       bool advised)
{
	struct small *small = &segment->small;

	pthread_mutex_lock(&workers->lock);
	if (!small->to && segment->next < segment->end) {
		small->from = segment->next < segment->advised ?
				      segment->advised :
				      segment->next;
		small->to = segment->end;
	}
	small->advised = advised;
	pthread_mutex_unlock(&workers->lock);
}

/*
 * What cannot be advised again is left as it is. Noted before: a child of a
 * fork in a callback restores it, too.
 */
static void give_up(struct workers *workers, struct segment *segment)
{
	struct small *small = &segment->small;

	pthread_mutex_lock(&workers->lock);
	segment->settled = true;
	pthread_mutex_unlock(&workers->lock);
	if (!workers->advice_read)
		find_advice(workers);
	workers->advice_read = true;
	if (!segment->advised)
		return;
	note_small(workers, segment, false);
	if (small->to && advise(small, MADV_HUGEPAGE) &&
	    advise(small, MADV_NOHUGEPAGE))
		note_small(workers, segment, true);
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

	pressure_read_little(last);
	if (!before.known || !last->known)
		return false;
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
	workers->ask_at = workers->report.done + ASK_AFTER;
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
 * @result:  result: its bytes in huge pages, 0 if the kernel does not tell; and
 *           those for which none were tried
 */
void watch_huge_pages(struct workers *workers, const struct slice *slice,
		      uint64_t ns, struct page_result *result)
{
	struct segment *segment = slice->segment;
	size_t huge = workers->huge, blocks = 0, there = 0;
	uintptr_t at = (slice->from + huge - 1) & -huge;
	int is = 1;

	if (segment->map.page > (size_t)sysconf(_SC_PAGESIZE)) {
		result->huge = slice->to - slice->from;
		return;
	}
	for (; at < slice->to && slice->to - at >= huge; at += huge) {
		blocks++;
		if (is >= 0)
			is = pages_huge(&workers->pages, at);
		there += is > 0;
	}
	if (2 * there < blocks && !(workers->options.flags & BMM_COMPACT) &&
	    segment->map.flags & (ANONYMOUS | UNWATCHED))
		ask_kernel(workers, segment, ns, is < 0 ? 0 : blocks - there);
	result->huge = there * huge;
	if (slice->small)
		result->small = slice->to - slice->from - result->huge;
}

/* What was advised is as it was. */
void restore_huge_pages(struct workers *workers)
{
	struct segment *segment = workers->segments, *end;

	for (end = segment + workers->segments_nr; segment < end; segment++)
		if (segment->small.to)
			advise(&segment->small, MADV_HUGEPAGE);
}
