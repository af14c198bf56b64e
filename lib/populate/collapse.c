// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* bmm_collapse(): huge pages later, in place of small ones. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#ifndef MADV_COLLAPSE /* of <sys/mman.h> */
#define MADV_COLLAPSE 25
#endif
#define IN_A_ROW 8U /* documented */

struct collapse {
	const struct bmm_options *options;
	struct bmm_report report;
	size_t len;	       /* of all blocks */
	unsigned int in_a_row; /* blocks for which there was no memory */
	bool allowed;	       /* a block was not refused */
	uint64_t told_ns;
	struct maps maps;
	struct map map; /* the last that was looked at */
};

/* Whether nothing is mapped at a page; reports it. */
static bool fail_hole(struct collapse *all, uintptr_t page)
{
	if (!is_hole(page))
		return false;
	all->report.failed = (void *)page;
	all->report.failed_len = (size_t)sysconf(_SC_PAGESIZE);
	all->report.cause = BMM_CAUSE_HOLE;
	return true;
}

/*
 * Whether nothing is mapped at a page of a block, and whether it is all of one
 * mapping: of others the kernel skips a block, and says that it worked.
 */
static bool find_hole(struct collapse *all, uintptr_t at, uintptr_t end,
		      bool *whole)
{
	struct map *map = &all->map;
	uintptr_t page = at;

	*whole = true;
	for (; page < end; page = map->end) {
		if (page >= map->end && !map_find(&all->maps, page, false, map))
			break;
		if (map->start > page)
			break;
		*whole &= map->start <= at && end <= map->end;
	}
	return page < end && fail_hole(all, page);
}

/* Returns 0, or an error that ends it. */
static int collapse_block(struct collapse *all, uintptr_t at, size_t huge)
{
	bool whole;
	int error = 0;

	if (find_hole(all, at, at + huge, &whole))
		return -ENOMEM;
	if (!whole)
		error = EBUSY;
	else if (syscall(SYS_madvise, at, huge, MADV_COLLAPSE))
		error = errno;
	if (error == ENOMEM && fail_hole(all, at)) /* by now */
		return -ENOMEM;
	all->report.done += huge;
	all->report.huge += error ? 0 : huge;
	all->report.small += error ? huge : 0;
	all->allowed |= error != EINVAL;
	all->in_a_row = error == ENOMEM ? all->in_a_row + 1 : 0;
	if (all->in_a_row < IN_A_ROW)
		return 0;
	all->report.cause = BMM_CAUSE_FRAGMENTED;
	return -EAGAIN;
}

static int report_collapse(struct collapse *all, bool last)
{
	const struct bmm_options *options = all->options;
	uint64_t now = bmm_host_clock();

	if (!options->progress || (!last && now - all->told_ns < TELL_NS))
		return 0;
	all->told_ns = now;
	all->map.end = 0; /* the program may change it */
	if (!options->progress(options->context, all->report.done, all->len) ||
	    last)
		return 0;
	all->report.cause = BMM_CAUSE_CANCELLED;
	return -ECANCELED;
}

static int collapse_blocks(struct collapse *all, uintptr_t at, size_t huge)
{
	uintptr_t end = at + all->len;
	int error = 0, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	maps_open(&all->maps);
	for (; at < end && !error; at += huge) {
		error = collapse_block(all, at, huge);
		if (!error)
			error = report_collapse(all, false);
		if (error && all->report.failed_len)
			break;
		all->report.reached = (void *)(at + huge);
	}
	maps_close(&all->maps);
	pthread_setcancelstate(cancel, NULL);
	if (!error && all->len && !all->allowed) {
		all->report.failed = (void *)(end - all->len);
		all->report.failed_len = all->len;
		all->report.cause = BMM_CAUSE_NO_HUGE;
		error = -EINVAL;
	}
	return error;
}

/* What is wrong with the arguments; 0: nothing. */
static int check_collapse(struct collapse *all, uintptr_t start, size_t len)
{
	const struct bmm_options *options = all->options;

	all->report.cause = BMM_CAUSE_FLAGS;
	if (options->flags)
		return -EINVAL;
	all->report.cause = BMM_CAUSE_OPTION;
	if (options->threads > 1 || options->ready || options->piece)
		return -EINVAL;
	all->report.cause = BMM_CAUSE_RANGE;
	if (start & ((size_t)sysconf(_SC_PAGESIZE) - 1) || start + len < start)
		return -EINVAL;
	all->report.cause = BMM_CAUSE_KERNEL;
	if (syscall(SYS_madvise, start, 0UL, MADV_COLLAPSE))
		return -EOPNOTSUPP;
	all->report.cause = BMM_CAUSE_NONE;
	return 0;
}

/**
 * bmm_collapse() - replace resident small pages by transparent huge ones
 * @addr:    first byte, at the start of a page
 * @len:     bytes; only whole huge pages of it are looked at
 * @options: or NULL; only progress and context
 * @report:  how far it got; or NULL. Its @huge bytes have huge pages now, its
 *           @small bytes have not
 *
 * For memory that bmm_populate() gave small pages because memory was
 * fragmented: later, from a thread that has time. The content does not change;
 * who accesses it meanwhile waits for a copy of one huge page at most. What has
 * huge pages costs next to nothing, so a later call may begin at the start
 * again. It works on the calling thread, and ends early where the kernel had no
 * memory for eight huge pages in a row: each such failure takes milliseconds.
 * What would be a huge page of two mappings, as mprotect() makes of one, stays
 * small.
 *
 * Return: 0, or a negative error number of errno.h. EAGAIN: it ended early;
 * what is before the report's @reached has been looked at. EINVAL: an argument
 * is wrong, or the mapping has no huge pages to be had (MADV_NOHUGEPAGE,
 * hugetlbfs, nothing is resident). ENOMEM: nothing is mapped at the report's
 * @failed. ECANCELED: @progress cancelled. EOPNOTSUPP: Linux before 6.1, or one
 * without transparent huge pages.
 */
int bmm_collapse(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report)
{
	uintptr_t start = (uintptr_t)addr, first;
	size_t huge = huge_page();
	struct bmm_options copy;
	struct collapse all = { .options = &copy };
	uint64_t begin = bmm_host_clock();

	if (!report_is_valid(report))
		return -EINVAL;
	all.report.reached = addr;
	all.report.error = options_copy(&copy, options);
	if (all.report.error)
		all.report.cause = options_cause(all.report.error);
	else
		all.report.error = check_collapse(&all, start, len);
	if (!all.report.error) {
		first = (start + huge - 1) & -huge;
		if (first >= start && first - start <= len)
			all.len = (len - (first - start)) & -huge;
		all.told_ns = begin;
		all.report.threads = 1;
		all.report.error = collapse_blocks(&all, first, huge);
		report_collapse(&all, true);
	}
	all.report.ns = bmm_host_clock() - begin;
	report_copy(report, &all.report);
	return all.report.error;
}
