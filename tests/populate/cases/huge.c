// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Transparent huge pages: counted, given up where they cost much, had later. */
#include <errno.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

#define HUGE (2 * MIB)
#define FEW  (16 * MIB)

static char *aligned(size_t len, int advice)
{
	char *p = map(len + HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p = (char *)(((uintptr_t)p + HUGE - 1) & -HUGE);
	if (madvise(p, len, advice))
		exit(SKIPPED);
	return p;
}

/* A word of a line that smaps has of the mapping that has an address. */
static bool mapping_has(const char *p, const char *line, const char *word)
{
	static char copy[256 << 10];
	uintptr_t from, to;
	bool in = false;
	char *at;

	strcpy(copy, text_of("/proc/self/smaps"));
	for (at = strtok(copy, "\n"); at; at = strtok(NULL, "\n")) {
		if (sscanf(at, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			in = from <= (uintptr_t)p && (uintptr_t)p < to;
		else if (in && !strncmp(at, line, strlen(line)))
			return strstr(at, word);
	}
	return false;
}

static bool is_advised(const char *p, size_t len)
{
	return mapping_has(p, "VmFlags", " hg") &&
	       mapping_has(p + len - PAGE, "VmFlags", " hg");
}

static bool huge_ever(void)
{
	return !strstr(text_of("/sys/kernel/mm/transparent_hugepage/enabled"),
		       "[never]");
}

CASE(huge_counted, HERE | MAPS | ENTRIES)
{
	struct bmm_report report;
	bool tells;
	char *p;

	if (!huge_ever())
		exit(SKIPPED);
	p = aligned(LEN, MADV_HUGEPAGE);
	report = all_of(p, LEN, NULL);
	tells = report.huge; /* Linux 6.7 and later */
	if (tells)
		check(mapping_has(p, "AnonHugePages", "98304 kB") ==
		      (report.huge == LEN));
	check(report.huge <= LEN && !report.small);
	report = all_of(p, LEN, NULL); /* there already */
	check(!tells || report.huge >= LEN / 2);
	p = anonymous(LEN);
	report = all_of(p, LEN, NULL);
	check(!report.huge && !report.small);
}

static size_t small_meanwhile; /* calls that see small pages advised */

static int look_at_advice(void *context, size_t done, size_t len)
{
	const char *p = context;

	(void)done;
	small_meanwhile += mapping_has(p + len - PAGE, "VmFlags", " nh");
	return 0;
}

/* No huge page is to be had; the kernel compacts memory for each, or not. */
static struct bmm_report populate_small(char *p, uint32_t flags, bool costly)
{
	struct bmm_options options = OPTIONS(.flags = flags,
					     .progress = look_at_advice,
					     .context = p);

	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		exit(SKIPPED);
	small_meanwhile = 0;
	compaction_made = costly ? 1000 : 0;
	sleep_us = 1000; /* so that progress is reported in between */
	return all_of(p, LEN, &options);
}

CASE(gives_up_huge, HERE | MAPS | ENTRIES)
{
	char text[256], *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report = populate_small(p, 0, true);

	check(report.small && report.small <= LEN && !report.huge);
	check(small_meanwhile);
	check(is_advised(p, LEN));
	bmm_report_text(&report, text, sizeof(text));
	check(strstr(text, " bytes have small pages: memory was compacted for "
			   "huge ones in vain"));
}

/* As a part of a mapping that goes on. */
CASE(gives_up_huge_part, HERE)
{
	char *p = aligned(LEN + 2 * HUGE, MADV_HUGEPAGE) + HUGE;
	struct bmm_report report = populate_small(p, 0, true);

	check(report.small && report.small < LEN);
	check(is_advised(p - HUGE, LEN + 2 * HUGE));
	check(!mapping_has(p, "VmFlags", " nh"));
}

CASE(insists_on_huge, HERE)
{
	char *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report = populate_small(p, BMM_COMPACT, true);

	check(!report.small && !small_meanwhile && is_advised(p, LEN));
}

CASE(goes_on_if_cheap, HERE | ENTRIES)
{
	char *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report = populate_small(p, 0, false);

	check(!report.small && !small_meanwhile && is_advised(p, LEN));
}

/* Counters that could be read only later do not seem to have grown. */
CASE(unknown_counters, HERE | ENTRIES)
{
	char *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report;

	compaction_before = 1 << 20;
	vmstat_refused = 1;
	report = populate_small(p, 0, false);
	check(!report.small && !small_meanwhile && is_advised(p, LEN));
}

/* Pages that had been there are huge: they are not among the small ones. */
CASE(huge_or_small, HERE)
{
	char *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report;

	check(!bmm_populate(p + LEN / 2, LEN / 2, NULL, NULL));
	report = populate_small(p, 0, true);
	check(report.small && report.huge + report.small <= LEN);
}

CASE(leaves_what_cannot_be_restored, HERE)
{
	char *p = aligned(LEN, MADV_HUGEPAGE);
	struct bmm_report report;

	forbid(SYS_madvise, 2, ~0U, MADV_HUGEPAGE, 0, EPERM);
	report = populate_small(p, 0, true);
	check(!report.small && !small_meanwhile && is_advised(p, LEN));
}

/* It takes long in a large process. */
CASE(reads_smaps_once, HERE)
{
	struct bmm_options options = OPTIONS(.threads = 1);
	struct bmm_range ranges[16];
	struct bmm_report report = REPORT;
	size_t i, len = 32 * MIB;
	char *p = aligned(32 * len, MADV_HUGEPAGE);

	for (i = 0; i < 16; i++)
		ranges[i] = (struct bmm_range){ p + 2 * i * len, len, 0, 0 };
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		exit(SKIPPED);
	sleep_us = 1;
	compaction_made = 1000;
	check(!bmm_populate_ranges(ranges, 16, &options, &report));
	check(report.small >= 16 * len / 4 && smaps_read == 1);
	check(is_advised(p, 32 * len) && !mapping_has(p, "VmFlags", " nh"));
}

/* What was not advised could not be restored. */
CASE(leaves_unadvised, HERE)
{
	char *p = map(LEN, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct bmm_report report = populate_small(p, 0, true);

	check(!report.small && !small_meanwhile);
	check(!mapping_has(p, "VmFlags", " nh"));
	check(!mapping_has(p, "VmFlags", " hg"));
}

static char *small_pages(size_t len)
{
	char *p = aligned(len, MADV_NOHUGEPAGE);
	size_t i;

	check(!bmm_populate(p, len, NULL, NULL));
	for (i = 0; i < len; i += PAGE)
		p[i] = (char)(i / PAGE);
	madvise(p, len, MADV_HUGEPAGE);
	return p;
}

static void need_collapse(void)
{
	if (madvise(map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 0, COLLAPSE))
		exit(SKIPPED); /* before Linux 6.1 */
}

static void expect_collapse(char *p, size_t len, int error,
			    enum bmm_cause cause, char *failed)
{
	struct bmm_report report = REPORT;

	check(bmm_collapse(p, len, NULL, &report) == error);
	check(report.error == error && report.cause == cause);
	check(report.failed == failed && !failed == !report.failed_len);
}

CASE(collapses, HERE)
{
	struct bmm_report report = REPORT;
	char *p;
	size_t i;

	need_collapse();
	p = small_pages(FEW);
	check(!bmm_collapse(p + PAGE, FEW - PAGE, NULL, &report));
	check(report.done == FEW - HUGE && report.reached == p + FEW);
	check(report.huge + report.small == FEW - HUGE && report.threads == 1);
	check(!bmm_collapse(p, FEW, NULL, &report));
	check(report.done == FEW &&
	      report.huge); /* some memory is not in pieces */
	for (i = 0; i < FEW; i += PAGE)
		check(p[i] == (char)(i / PAGE));
	check(!bmm_collapse(p, PAGE, NULL, &report) && !report.done);
	check(!bmm_collapse(p, 0, NULL, NULL));
}

static int refuse(void *context, size_t done, size_t len)
{
	*(size_t *)context = done;
	usleep(1);
	return done < len;
}

CASE(collapse_errors, HERE)
{
	struct bmm_options flags = OPTIONS(.flags = BMM_READ);
	struct bmm_options threads = OPTIONS(.threads = 2);
	char *p, *q;

	need_collapse();
	p = small_pages(FEW);
	check(bmm_collapse(p, FEW, &flags, NULL) == -EINVAL);
	check(bmm_collapse(p, FEW, &threads, NULL) == -EINVAL);
	expect_collapse(p + 1, FEW, -EINVAL, BMM_CAUSE_RANGE, NULL);
	expect_collapse(p, -HUGE, -EINVAL, BMM_CAUSE_RANGE, NULL);
	q = aligned(FEW, MADV_NOHUGEPAGE);
	check(!bmm_populate(q, FEW, NULL, NULL));
	expect_collapse(q, FEW, -EINVAL, BMM_CAUSE_NO_HUGE, q);
	munmap(p + 2 * HUGE, HUGE);
	expect_collapse(p, FEW, -ENOMEM, BMM_CAUSE_HOLE, p + 2 * HUGE);
}

/* The kernel takes what it skips of a huge page for done. */
CASE(collapse_across_mappings, HERE)
{
	struct bmm_report report = REPORT;
	char *p;

	need_collapse();
	p = small_pages(FEW);
	check(!mprotect(p + HUGE + HUGE / 2, FEW - HUGE - HUGE / 2, PROT_READ));
	check(!bmm_collapse(p + HUGE, HUGE, NULL, &report));
	check(!report.huge && report.small == HUGE && report.done == HUGE);
}

CASE(collapse_around_a_hole, HERE | MAPS)
{
	char *p;

	need_collapse();
	p = small_pages(FEW);
	munmap(p + 2 * HUGE + PAGE, PAGE);
	expect_collapse(p, FEW, -ENOMEM, BMM_CAUSE_HOLE, p + 2 * HUGE + PAGE);
}

CASE(text_of_older_report, HERE)
{
	struct bmm_report report = REPORT;

	report.size = offsetof(struct bmm_report, huge);
	report.small = MIB; /* not of the report: what is behind it */
	check(!bmm_report_text(&report, NULL, 0));
}

CASE(collapse_of_fragmented, HERE)
{
	struct bmm_report report = REPORT;
	char text[256], *p;

	need_collapse();
	p = small_pages(2 * FEW);
	collapse_error = ENOMEM;
	check(bmm_collapse(p, 2 * FEW, NULL, &report) == -EAGAIN);
	check(report.cause == BMM_CAUSE_FRAGMENTED && !report.huge);
	check(report.small == 8 * HUGE && report.reached == p + 8 * HUGE);
	bmm_report_text(&report, text, sizeof(text));
	check(strstr(text, "memory is fragmented"));
}

CASE(collapse_cancelled, HERE)
{
	size_t done = 0;
	struct bmm_options options = OPTIONS(.progress = refuse,
					     .context = &done);
	struct bmm_report report = REPORT;

	need_collapse();
	collapse_error = EAGAIN;
	sleep_us = 20000;
	check(bmm_collapse(small_pages(FEW), FEW, &options, &report) ==
	      -ECANCELED);
	check(report.cause == BMM_CAUSE_CANCELLED && report.done == done);
	check(done && done < FEW);
}

CASE(collapse_not_there, HERE)
{
	need_collapse();
	collapse_error = EINVAL;
	expect_collapse(small_pages(FEW), FEW, -EOPNOTSUPP, BMM_CAUSE_KERNEL,
			NULL);
}
