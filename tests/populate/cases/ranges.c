// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Several ranges in one call, and the pieces of them that are ready. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

#define RANGE(p, length) ((struct bmm_range){ .addr = (p), .len = (length) })

CASE(ranges, HERE | TOUCHED | MAPS)
{
	char *a = anonymous(LEN), *b = anonymous(PAGE), *c = anonymous(3 * MIB);
	struct bmm_range ranges[] = { RANGE(c, 3 * MIB - 1), RANGE(a, LEN),
				      RANGE(b + 8, 0), RANGE(b, PAGE) };
	struct bmm_report report = REPORT;

	ranges[2].addr = b; /* of length 0: skipped, wherever it is */
	check(!bmm_populate_ranges(ranges, 4, NULL, &report));
	check(report.done == LEN + PAGE + 3 * MIB);
	check(is_there(a, LEN) && is_there(b, PAGE) && is_there(c, 3 * MIB));
	check(!bmm_populate_ranges(ranges, 0, NULL, &report) && !report.done);
	check(!bmm_populate_ranges(NULL, 0, NULL, NULL));
}

/* More than fit the caller's stack, and more than are told apart. */
CASE(many_ranges, HERE)
{
	static struct bmm_range ranges[BMM_RANGES_MAX + 1];
	struct bmm_report report = REPORT;
	char *p = anonymous(2 * BMM_RANGES_MAX * PAGE);
	size_t i;

	for (i = 0; i < BMM_RANGES_MAX; i++) /* from the last to the first */
		ranges[i] = RANGE(p + 2 * (BMM_RANGES_MAX - 1 - i) * PAGE, PAGE);
	check(!bmm_populate_ranges(ranges, BMM_RANGES_MAX, NULL, &report));
	check(report.done == BMM_RANGES_MAX * PAGE && !report.error);
	for (i = 0; i < BMM_RANGES_MAX; i++)
		check(is_there(ranges[i].addr, PAGE));
	/* not what lies between */
	check(faults_of(p, 2 * BMM_RANGES_MAX * PAGE, true) >= BMM_RANGES_MAX);
	check(bmm_populate_ranges(ranges, BMM_RANGES_MAX + 1, NULL, &report) ==
	      -EINVAL);
	check(report.cause == BMM_CAUSE_COUNT && !report.done);
}

/* The report has the range that is wrong, and nothing is done. */
static void refused(const struct bmm_range *ranges, size_t wrong_one,
		    enum bmm_cause cause, const char *text)
{
	struct bmm_report report = REPORT;
	char line[256];

	check(bmm_populate_ranges(ranges, 2, NULL, &report) == -EINVAL);
	check(report.cause == cause && !report.done);
	check(report.failed == ranges[wrong_one].addr);
	bmm_report_text(&report, line, sizeof(line));
	check(strstr(line, text));
}

CASE(wrong_ranges, HERE)
{
	char *p = anonymous(8 * PAGE);
	struct bmm_range ranges[] = { RANGE(p, 4 * PAGE),
				      RANGE(p + 3 * PAGE, PAGE) };

	refused(ranges, 1, BMM_CAUSE_OVERLAP, "overlaps another");
	ranges[1] = RANGE(p, PAGE);
	refused(ranges, 1, BMM_CAUSE_OVERLAP, "overlaps another");
	ranges[0] = RANGE(p + 2 * PAGE, PAGE);
	ranges[1] = RANGE(p, 2 * PAGE + 1); /* whole pages count */
	refused(ranges, 1, BMM_CAUSE_OVERLAP, "overlaps another");
	ranges[1] = RANGE(p + 1, PAGE);
	refused(ranges, 1, BMM_CAUSE_RANGE, "start of a page");
	ranges[1] = RANGE(p + 4 * PAGE, SIZE_MAX);
	refused(ranges, 1, BMM_CAUSE_RANGE, "wraps around");
	ranges[1] = RANGE(p, PAGE);
	ranges[1].flags = BMM_READ; /* not of a range */
	refused(ranges, 1, BMM_CAUSE_FLAGS, "flags");
	ranges[1].flags = BMM_ON_NODE;
	ranges[1].node = UINT32_MAX;
	refused(ranges, 1, BMM_CAUSE_NODE, "node");
	check(faults_of(p, 8 * PAGE, true) >= 8);
}

/* Each is known for what it is, although maps is read in one direction. */
CASE(ranges_of_a_mapping, HERE | MAPS)
{
	size_t third = 40 * MIB;
	char *p = map(3 * third, MAP_SHARED | MAP_ANONYMOUS, -1);
	struct bmm_range ranges[] = { RANGE(p, third), RANGE(p + third, PAGE),
				      RANGE(p + 2 * third, third) };

	memset(p, 1, 3 * third);
	check(!bmm_populate_ranges(ranges, 3, NULL, NULL));
	asked = 0;
	check(!bmm_populate_ranges(ranges, 3, NULL, NULL));
	check(asked < MIB); /* the first page of each slice */
}

/* A hole in one of them: what lies before is done, what follows may be. */
CASE(hole_in_a_range, HERE)
{
	char *a = anonymous(LEN), *b = anonymous(4 * PAGE);
	struct bmm_range ranges[] = { RANGE(a, LEN), RANGE(b, 4 * PAGE) };
	struct bmm_report report = REPORT;

	munmap(b + PAGE, PAGE);
	check(bmm_populate_ranges(ranges, 2, NULL, &report) == -ENOMEM);
	check(report.cause == BMM_CAUSE_HOLE && report.failed == b + PAGE);
	check(report.failed_len == PAGE);
	check((char *)report.reached <= b + PAGE);
	check(b < a || is_there(a, LEN));
}

/* A range on each node, as a machine with two may have it: a node is a CPU. */
CASE(range_on_each_node, HERE)
{
	size_t half = 128 * MIB;
	char *p = anonymous(2 * half);
	struct bmm_range ranges[] = { RANGE(p, half), RANGE(p + half, half) };
	struct bmm_report report = REPORT;
	int mode = -1;

	ranges[0].flags = BMM_ON_NODE; /* the only one there really is */
	check(!bmm_populate_ranges(ranges, 2, NULL, &report));
	check(is_there(p, 2 * half) && report.done == 2 * half);
	__real_syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL);
	check(mode == MODE_DEFAULT);
}

/* What the program was told. */
static struct told {
	char *p;
	size_t piece, bytes;
	unsigned int calls, same_thread, unordered, absent, wrong_len;
	unsigned int refuse_at; /* call */
	uintptr_t last;
	pthread_t caller;
	size_t len;
} told;

static int be_told(void *context, void *addr, size_t len)
{
	size_t at = (size_t)((char *)addr - told.p);

	check(context == &told);
	told.calls++;
	told.same_thread += pthread_equal(told.caller, pthread_self()) != 0;
	told.unordered += (uintptr_t)addr < told.last;
	told.wrong_len += at % told.piece ||
			  (len != told.piece && at + len != told.len);
	told.absent += !sleep_us && !is_there(addr, len);
	told.last = (uintptr_t)addr + len;
	told.bytes += len;
	return told.calls == told.refuse_at;
}

static struct bmm_options telling(char *p, size_t len, size_t piece)
{
	told = (struct told){ .p = p, .len = len, .piece = piece };
	told.caller = pthread_self();
	return (struct bmm_options)OPTIONS(.ready = be_told, .context = &told,
					   .piece = piece);
}

/* Each byte once, on the caller's thread, in pieces of that size. */
static void check_told(size_t len)
{
	check(told.bytes == len);
	check(told.calls == (len + told.piece - 1) / told.piece);
	check(told.same_thread == told.calls);
	check(!told.absent && !told.wrong_len);
}

CASE(ready_pieces, HERE | TOUCHED)
{
	static const size_t pieces[] = { PAGE, 3 * PAGE, MIB, 7 * MIB,
					 200 * MIB };
	size_t i, len = LEN + 5 * PAGE;
	struct bmm_options options;

	for (i = 0; i < 5; i++) {
		size_t part = i < 2 ? 2 * MIB + PAGE : len;
		char *p = anonymous(part);

		options = telling(p, part, pieces[i]);
		options.threads = i == 3; /* the caller alone, too */
		all_of(p, part, &options);
		check_told(part);
		munmap(p, part);
	}
}

/* Threads that are done in any order; the program is told in one, if it asks. */
CASE(ready_in_order, HERE)
{
	size_t len = 512 * MIB;
	char *p = anonymous(len);
	struct bmm_options options = telling(p, len, 4 * MIB);

	cpus_made = 16;
	sleep_us = 200;
	options.flags = BMM_IN_ORDER;
	check(all_of(p, len, &options).threads > 1);
	check_told(len);
	check(!told.unordered);
	options = telling(p, len, 64 * MIB); /* and in any order */
	all_of(p, len, &options);
	check_told(len);
}

/* Ranges that touch each other are pieces of their own. */
CASE(ready_of_ranges, HERE)
{
	char *p = anonymous(LEN);
	struct bmm_options options = telling(p, LEN, 32 * MIB);
	struct bmm_range ranges[] = { RANGE(p + 64 * MIB, 32 * MIB),
				      RANGE(p, 32 * MIB),
				      RANGE(p + 32 * MIB, 32 * MIB) };

	options.piece = 0; /* the default is more than any of them */
	options.flags = BMM_IN_ORDER;
	check(!bmm_populate_ranges(ranges, 3, &options, NULL));
	check_told(LEN);
	check(!told.unordered);
}

CASE(refused_piece, HERE)
{
	size_t len = 512 * MIB;
	char *p = anonymous(len);
	struct bmm_options options = telling(p, len, 2 * MIB);
	struct bmm_report report = REPORT;
	char line[256];

	told.refuse_at = 3;
	options.flags = BMM_IN_ORDER;
	check(bmm_populate(p, len, &options, &report) == -ECANCELED);
	check(report.cause == BMM_CAUSE_READY && told.calls == 3);
	check(report.failed == p + 4 * MIB && report.failed_len == 2 * MIB);
	check(report.done >= 6 * MIB && report.done < len);
	bmm_report_text(&report, line, sizeof(line));
	check(strstr(line, "the program refused the piece"));
	check(is_there(p, 6 * MIB)); /* usable */
}

/* No piece that has a page that failed; all before it. */
CASE(ready_up_to_a_hole, HERE)
{
	char *p = anonymous(LEN);
	struct bmm_options options = telling(p, 50 * MIB, MIB);

	munmap(p + 50 * MIB + PAGE, PAGE);
	options.flags = BMM_IN_ORDER;
	check(bmm_populate(p, LEN, &options, NULL) == -ENOMEM);
	check(told.bytes == 50 * MIB && !told.unordered);
}

static int populate_again(void *context, void *addr, size_t len)
{
	char *other = anonymous(LEN);

	(void)context;
	(void)addr;
	(void)len;
	check_populated(other, LEN);
	munmap(other, LEN);
	return 0;
}

CASE(populates_in_ready, HERE)
{
	struct bmm_options options = OPTIONS(.ready = populate_again,
					     .piece = 48 * MIB);

	all_of(anonymous(LEN), LEN, &options);
}

/* No thread can be had: the caller populates and passes by turns. */
CASE(ready_without_threads, HERE)
{
	char *p = anonymous(LEN);
	struct bmm_options options = telling(p, LEN, 16 * MIB);

	creations = 0;
	check(all_of(p, LEN, &options).threads == 1 && !created);
	check_told(LEN);
}

CASE(ready_while_clearing, HERE)
{
	char *p = anonymous(LEN);
	struct bmm_options options = telling(p, LEN, 16 * MIB);

	memset(p, 1, LEN);
	check(!bmm_clear_parallel(p, LEN, &options, NULL));
	check_told(LEN);
	check(is_zero(p, LEN));
}
