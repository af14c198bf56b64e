// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Options in, reports out: from older and newer programs, too. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "populate.h"

/* Sizes in the first version: every program has at least these. */
#define OPTIONS_LEAST (offsetof(struct bmm_options, context) + sizeof(void *))
#define REPORT_LEAST  (offsetof(struct bmm_report, touched) + sizeof(uint32_t))

/**
 * options_copy() - copy a program's options
 * @to:   result, in this version
 * @from: in the program's version, or NULL
 *
 * Return: 0; -EINVAL for a wrong size; -E2BIG for an option that this version
 * does not know.
 */
int options_copy(struct bmm_options *to, const struct bmm_options *from)
{
	const char *bytes = (const char *)from;
	size_t i;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	if (from->size < OPTIONS_LEAST || from->size > 4096)
		return -EINVAL;
	for (i = sizeof(*to); i < from->size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

/* The cause of an error of options_copy(). */
enum bmm_cause options_cause(int error)
{
	return error == -E2BIG ? BMM_CAUSE_NEWER : BMM_CAUSE_SIZE;
}

bool report_is_valid(const struct bmm_report *report)
{
	return !report ||
	       (report->size >= REPORT_LEAST && report->size <= 4096);
}

void report_copy(struct bmm_report *to, const struct bmm_report *from)
{
	size_t size;

	if (!to)
		return;
	size = to->size;
	memset(to, 0, size);
	memcpy(to, from, size < sizeof(*from) ? size : sizeof(*from));
	to->size = size;
}

/* A program of before that field has something else there. */
static size_t small_of(const struct bmm_report *report)
{
	size_t end = offsetof(struct bmm_report, small) + sizeof(report->small);

	return report->size < end ? 0 : report->small;
}

static const char *const causes[] = {
	[BMM_CAUSE_NONE] = "",
	[BMM_CAUSE_UNKNOWN] = "the system does not tell why",
	[BMM_CAUSE_ARGUMENT] = "an argument is wrong",
	[BMM_CAUSE_NODE] =
		"the memory node is not there, or may not be chosen here",
	[BMM_CAUSE_HOLE] = "nothing is mapped there",
	[BMM_CAUSE_PROTECTED] = "the mapping does not allow it",
	[BMM_CAUSE_SPECIAL] = "a mapping that cannot be populated",
	[BMM_CAUSE_POOL] = "no huge page is left in the pool",
	[BMM_CAUSE_BACKING] =
		"the file ends before, its file system is full or has failed, or userfaultfd forbids it",
	[BMM_CAUSE_POISONED] = "its memory is broken",
	[BMM_CAUSE_MEMORY] = "no memory: of the cgroup, the node or the machine",
	[BMM_CAUSE_CANCELLED] = "cancelled",
	[BMM_CAUSE_FORKED] = "the child of a fork in a callback",
	[BMM_CAUSE_COMPACTION] = "pages were moved to make huge ones",
	[BMM_CAUSE_RECLAIM] = "memory had to be freed first",
	[BMM_CAUSE_GUARD] = "a guard page",
	[BMM_CAUSE_KEY] = "a protection key does not allow it",
	[BMM_CAUSE_USERFAULT] =
		"the program has it to supply, and the kernel may not ask (userfaultfd)",
	[BMM_CAUSE_LIMIT] =
		"the pool has huge pages left: the cgroup allows no more, others have reserved them, the file ends before, or userfaultfd forbids it",
	[BMM_CAUSE_KERNEL] =
		"this kernel cannot (5.14 can), or a filter of system calls says so",
	[BMM_CAUSE_FILTER] = "a filter of system calls forbids it",
	[BMM_CAUSE_PREEMPTED] = "other work had the CPU meanwhile",
	[BMM_CAUSE_RANGE] =
		"the range is not at the start of a page, or wraps around the address space",
	[BMM_CAUSE_OVERLAP] = "the range overlaps another",
	[BMM_CAUSE_READY] = "the program refused the piece that was ready",
	[BMM_CAUSE_FRAGMENTED] =
		"memory is fragmented, or full: no huge page could be made",
	[BMM_CAUSE_NO_HUGE] =
		"the mapping allows no huge page, or nothing of it is resident",
	[BMM_CAUSE_FILE] = "the file cannot be read",
	[BMM_CAUSE_CHANGED] = "the file changed while it was read",
	[BMM_CAUSE_SEAL] = "the memory could not be sealed",
	[BMM_CAUSE_SIZE] =
		"size is not set in the options or the memory: BMM_OPTIONS_INIT and BMM_MEMORY_INIT set it",
	[BMM_CAUSE_NEWER] =
		"an option is set that this version of the library does not know",
	[BMM_CAUSE_FLAGS] =
		"flags has one that this function, or a range, does not take",
	[BMM_CAUSE_OPTION] =
		"threads, ready or piece is set, which this function does not take",
	[BMM_CAUSE_COUNT] =
		"count is above BMM_RANGES_MAX (1024), or there is no file",
	[BMM_CAUSE_PAGE] =
		"page is no power of two, or is set for a file, which has pages of its own",
	[BMM_CAUSE_FD] =
		"fd is no file on tmpfs or hugetlbfs, or the file has pages already",
	[BMM_CAUSE_TOTAL] = "the files are too large for an address space",
};

static const char *cause_text(enum bmm_cause cause)
{
	if ((size_t)cause >= sizeof(causes) / sizeof(causes[0]))
		cause = BMM_CAUSE_UNKNOWN;
	return causes[cause];
}

/* Not in the program's language, as the rest of the line; musl has no other. */
static const char *describe(int error)
{
#ifdef __GLIBC__
	return strerrordesc_np(error) ?: "unknown error";
#else
	return strerror(error);
#endif
}

/**
 * bmm_report_text() - describe in one line what became of a range
 * @report: from bmm_populate() or bmm_clear_parallel()
 * @buf:    result: what failed, where, why, and how far it got; else how much
 *          has small pages, or which piece was slow; or that the report's size
 *          was not set; empty if there is nothing to report, as after most
 *          successes; terminated, cut to @size - 1 bytes
 * @size:   bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole text, without the terminator.
 */
size_t bmm_report_text(const struct bmm_report *report, char *buf, size_t size)
{
	const char *error = describe(-report->error);
	int len = 0;

	if (size)
		*buf = 0;
	if (!report_is_valid(report))
		len = snprintf(
			buf, size,
			"the report has the size %zu: set it to sizeof(struct bmm_report)",
			(size_t)report->size);
	else if (report->failed_len)
		len = snprintf(buf, size,
			       "%zu bytes at %p: %s (%s); %zu bytes are done",
			       report->failed_len, report->failed,
			       cause_text(report->cause), error, report->done);
	else if (report->error)
		len = snprintf(buf, size, "%s (%s); %zu bytes are done",
			       cause_text(report->cause), error, report->done);
	else if (small_of(report))
		len = snprintf(
			buf, size,
			"%zu bytes have small pages: memory was compacted for huge ones in vain",
			small_of(report));
	else if (report->slow_len)
		len = snprintf(buf, size,
			       "%zu bytes at %p took %" PRIu64
			       " ms, elsewhere %" PRIu64 ": %s",
			       report->slow_len, report->slow,
			       report->slow_ns / 1000000,
			       report->usual_ns / 1000000,
			       cause_text(report->slow_cause));
	return len < 0 ? 0 : (size_t)len;
}
