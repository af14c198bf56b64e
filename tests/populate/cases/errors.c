// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What cannot be done: which error, where, why, and what is done then. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cases.h"

static void expect(char *p, size_t len, size_t good, enum bmm_cause cause,
		   int error)
{
	struct bmm_report report = REPORT;
	char text[256];

	check(bmm_populate(p, len, NULL, &report) == error);
	check(report.error == error && report.cause == cause);
	check(report.failed == p + good);
	check(report.failed_len == PAGE);
	check(report.reached == p + good);
	check(report.done >= good);
	check(good == 0 || is_there(p, good));
	check(bmm_report_text(&report, text, sizeof(text)) == strlen(text));
	check(strstr(text, "bytes at 0x") && strstr(text, "are done"));
	munmap(p, len);
}

CASE(bad_ranges, HERE | TOUCHED | MAPS)
{
	static const size_t lens[] = { 3 * PAGE, 5 * MIB, 96 * MIB };
	size_t i, len, at;
	char *p;

	for (i = 0; i < 3; i++) {
		len = lens[i];
		at = len / 3 * 2 / PAGE * PAGE;
		p = anonymous(len);
		munmap(p + at, PAGE);
		expect(p, len, at, BMM_CAUSE_HOLE, -ENOMEM);
		p = anonymous(len);
		mprotect(p + at, PAGE, PROT_READ);
		expect(p, len, at, BMM_CAUSE_PROTECTED, -EINVAL);
		p = anonymous(len);
		mprotect(p, PAGE, PROT_NONE);
		expect(p, len, 0, BMM_CAUSE_PROTECTED, -EINVAL);
		p = anonymous(len);
		check(!bmm_populate(p, len, NULL, NULL));
		mprotect(p + at, PAGE, PROT_READ); /* there, and forbidden */
		expect(p, len, at, BMM_CAUSE_PROTECTED, -EINVAL);
		p = map(len, MAP_SHARED, memfd(at));
		expect(p, len, at, BMM_CAUSE_BACKING, -EFAULT);
	}
}

/* Whose page the mapping allows and a guard does not (MADV_GUARD_INSTALL). */
CASE(guard, HERE | TOUCHED | MAPS)
{
	size_t len = 5 * MIB, at = 3 * MIB;
	char *p = anonymous(len);

	if (madvise(p + at, PAGE, 102)) /* before Linux 6.13 */
		exit(SKIPPED);
	expect(p, len, at, BMM_CAUSE_GUARD, -EFAULT);
	p = map(len, MAP_SHARED, memfd(len));
	if (!madvise(p + at, PAGE, 102)) /* Linux 6.15 */
		expect(p, len, at, BMM_CAUSE_GUARD, -EFAULT);
}

/* Pages that the program has to supply, but to nobody in the kernel. */
static void supplied(char *p, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING,
					 .range = { (uintptr_t)p, len } };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) /* before Linux 5.11 */
		exit(SKIPPED);
	check(!ioctl(fd, UFFDIO_REGISTER, &range));
}

CASE(userfault, HERE | TOUCHED | MAPS)
{
	char *p[] = { anonymous(MIB), map(MIB, MAP_SHARED, memfd(MIB)) };

	supplied(p[0], MIB);
	supplied(p[1], MIB);
	expect(p[0], MIB, 0, BMM_CAUSE_USERFAULT, -EFAULT);
	expect(p[1], MIB, 0, BMM_CAUSE_BACKING, -EFAULT);
}

/* Of this thread, for memory whose mapping allows all. */
CASE(key, HERE | MAPS)
{
	int writes = pkey_alloc(0, PKEY_DISABLE_WRITE);
	int all = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	char *p = anonymous(3 * MIB);

	if (writes < 0 || all < 0)
		exit(SKIPPED); /* not every CPU has keys */
	check(!pkey_mprotect(p + MIB, PAGE, PROT_READ | PROT_WRITE, writes));
	expect(p, 3 * MIB, MIB, BMM_CAUSE_KEY, -EINVAL);
	p = anonymous(3 * MIB);
	check(!pkey_mprotect(p + MIB, PAGE, PROT_READ | PROT_WRITE, all));
	expect(p, 3 * MIB, MIB, BMM_CAUSE_KEY, -EINVAL);
}

/* Secret memory has no pages for the kernel either (memfd_secret()). */
CASE(secret, HERE)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);

	if (fd < 0 || ftruncate(fd, MIB))
		exit(SKIPPED); /* not every kernel has it switched on */
	expect(map(MIB, MAP_SHARED, fd), MIB, 0, BMM_CAUSE_SPECIAL, -EINVAL);
}

/* The kernel's own way forbidden, and then the other one as well. */
CASE(filters, HERE)
{
	struct bmm_options options = OPTIONS(.flags = BMM_READ);
	struct bmm_report report = REPORT;
	char *p = anonymous(MIB), text[256];

	forbid(SYS_madvise, 2, ~0U, 22, 0, EPERM);
	check(bmm_populate(p, MIB, &options, &report) == -EOPNOTSUPP);
	check(report.cause == BMM_CAUSE_FILTER);
	forbid(SYS_madvise, 2, ~0U, 23, 0, ENOSYS);
	forbid(SYS_futex, 1, ~0U, FUTEX_WAKE_OP, 0, EPERM);
	check(bmm_populate(p, MIB, NULL, &report) == -EPERM);
	check(report.cause == BMM_CAUSE_FILTER && report.failed == p);
	bmm_report_text(&report, text, sizeof(text));
	check(strstr(text, "a filter of system calls"));
}

/*
 * The page that fails is found by halves: a call that fails, one for each half,
 * and one of the page alone.
 */
CASE(bisection, HERE)
{
	static const size_t bad[] = { 0, 1, 255, 256, 300, 510, 511 };
	size_t len = 512 * PAGE, i;
	struct map map = { .page = PAGE, .flags = READABLE | WRITABLE };
	struct page_result result;
	struct pages how;
	char *p;

	check(!pages_open(&how, false, false));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = anonymous(len);
		mprotect(p + bad[i] * PAGE, PAGE, PROT_READ);
		result = (struct page_result){ 0 };
		advised = 0;
		pages_populate(&how, (uintptr_t)p, (uintptr_t)p + len, &map,
			       &result);
		check(advised == 1 + 9 + 1);
		check(result.error == -EINVAL && result.len == PAGE);
		check(result.failed == (uintptr_t)p + bad[i] * PAGE);
		munmap(p, len);
	}
	pages_close(&how);
}

/* Nothing is done; the report has a range if that is what is wrong. */
static void refused(char *p, size_t len, const struct bmm_options *options,
		    int error, enum bmm_cause cause)
{
	struct bmm_report report = REPORT;

	check(bmm_populate(p, len, options, &report) == error);
	check(report.error == error && report.cause == cause);
	check(report.reached == p && !report.done);
	check(report.failed_len ==
	      (cause == BMM_CAUSE_RANGE || cause == BMM_CAUSE_NODE ? len : 0));
}

CASE(arguments, HERE)
{
	struct {
		struct bmm_options options;
		uint64_t more;
	} newer = { OPTIONS(.flags = 0), 0 };
	struct bmm_options options = OPTIONS(.flags = 0x80);
	struct bmm_report report = REPORT;
	char *p = anonymous(4 * PAGE);

	refused(p, 0, NULL, 0, BMM_CAUSE_NONE);
	check(!bmm_populate(NULL, 0, NULL, NULL));
	refused(p + 8, PAGE, NULL, -EINVAL, BMM_CAUSE_RANGE);
	refused(p, -PAGE, NULL, -EINVAL, BMM_CAUSE_RANGE);
	refused(p, SIZE_MAX - (uintptr_t)p, NULL, -EINVAL, BMM_CAUSE_RANGE);
	refused(NULL, SIZE_MAX, NULL, -EINVAL, BMM_CAUSE_RANGE);
	refused(p, PAGE, &options, -EINVAL, BMM_CAUSE_FLAGS);
	options.flags = 0;
	options.size = 8;
	refused(p, PAGE, &options, -EINVAL, BMM_CAUSE_SIZE);
	newer.options.size = sizeof(newer);
	check(faults_of(p, 4 * PAGE, true) >= 4); /* nothing was done so far */
	check(!bmm_populate(p, PAGE, &newer.options, &report));
	newer.more = 1;
	refused(p, PAGE, &newer.options, -E2BIG, BMM_CAUSE_NEWER);
	report.size = 4;
	check(bmm_populate(p, PAGE, NULL, &report) == -EINVAL);
	report.size = sizeof(report);
	check(!bmm_populate(p, PAGE + 1, NULL, &report)); /* to its end */
	check(report.done == 2 * PAGE);
	options = (struct bmm_options)OPTIONS(.flags = BMM_ON_NODE, .node = 999);
	refused(p, PAGE, &options, -EINVAL, BMM_CAUSE_NODE);
	options.node = UINT32_MAX;
	refused(p, PAGE, &options, -EINVAL, BMM_CAUSE_NODE);
	check(bmm_clear_parallel(p, PAGE, &options, &report) == -EINVAL);
	check(report.cause == BMM_CAUSE_FLAGS && !report.done);
	check(!bmm_clear_parallel(NULL, 0, NULL, NULL));
}

/* The line has the name of what is wrong: "an argument" would help nobody. */
CASE(arguments_are_named, HERE)
{
	static const struct {
		enum bmm_cause cause;
		const char *name;
	} all[] = {
		{ BMM_CAUSE_RANGE, "start of a page" },
		{ BMM_CAUSE_NODE, "node" },
		{ BMM_CAUSE_SIZE, "size" },
		{ BMM_CAUSE_NEWER, "option" },
		{ BMM_CAUSE_FLAGS, "flags" },
		{ BMM_CAUSE_OPTION, "threads, ready or piece" },
		{ BMM_CAUSE_COUNT, "BMM_RANGES_MAX (1024)" },
		{ BMM_CAUSE_PAGE, "page is" },
		{ BMM_CAUSE_FD, "fd is" },
		{ BMM_CAUSE_TOTAL, "files" },
	};
	struct bmm_options options = { 0 };
	struct bmm_report report = REPORT;
	char line[256], *p = anonymous(PAGE);
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		report.error = -EINVAL;
		report.cause = all[i].cause;
		check(bmm_report_text(&report, line, sizeof(line)) <
		      sizeof(line));
		check(strstr(line, all[i].name));
	}
	check(BMM_RANGES_MAX == 1024);
	check(bmm_populate(p, PAGE, &options, &report) == -EINVAL);
	bmm_report_text(&report, line, sizeof(line));
	check(strstr(line, "BMM_OPTIONS_INIT"));
	options.size = sizeof(options);
	options.piece = PAGE;
	check(bmm_collapse(p, PAGE, &options, &report) == -EINVAL);
	check(report.cause == BMM_CAUSE_OPTION);
	check(!bmm_populate(p, PAGE, NULL, &report));
	check(!bmm_report_text(&report, line, sizeof(line)) && !*line);
}

CASE(no_policies, HERE)
{
	struct bmm_options options = OPTIONS(.flags = BMM_ON_NODE, .node = 0);
	char *p = anonymous(LEN);

	forbid(SYS_set_mempolicy, 0, ~0U, 2, 0, EPERM);
	refused(p, LEN, &options, -EPERM, BMM_CAUSE_NODE);
	check(faults_of(p, MIB, true) > 200);
	check_populated(p, LEN);
}

/* Memory of a device is not even read: here what perf shows to a program. */
CASE(device, HERE | TOUCHED)
{
	struct perf_event_attr event = { .type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(event),
					 .config = PERF_COUNT_SW_DUMMY,
					 .exclude_kernel = 1 };
	struct bmm_report report = REPORT;
	struct iovec to, from;
	char byte, *p;
	long fd;

	fd = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0UL);
	p = map(PAGE, MAP_SHARED, (int)fd);
	to = (struct iovec){ &byte, 1 };
	from = (struct iovec){ p, 1 };
	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1)
		exit(SKIPPED); /* these are pages like others */
	check(bmm_populate(p, PAGE, NULL, &report) && !report.done);
	check(report.touched || report.cause == BMM_CAUSE_SPECIAL);
}

/* More mappings than are told apart, a huge page among the last. */
static char *mixed(size_t len)
{
	char *p = anonymous(len + 2 * MIB);
	size_t i;

	p += -(uintptr_t)p & (2 * MIB - 1);
	for (i = 0; i < len / MIB; i++)
		check(mmap(p + i * MIB, MIB / 2, PROT_READ | PROT_WRITE,
			   MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1,
			   0) != MAP_FAILED);
	check(mmap(p + len - 16 * MIB, 2 * MIB, PROT_READ | PROT_WRITE,
		   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1,
		   0) != MAP_FAILED);
	return p;
}

/* A file may be longer than its file system has room for; a disk is as it is. */
static char *made(const char *kind, size_t len)
{
	int fd = -1;

	if (!strcmp(kind, "private"))
		return anonymous(len);
	if (!strcmp(kind, "mixed"))
		return mixed(len);
	if (!strcmp(kind, "hugetlb"))
		return map(len,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				   MAP_NORESERVE,
			   -1);
	if (!strcmp(kind, "reserved"))
		return map(len, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (!strcmp(kind, "memfd"))
		fd = memfd_create("tests", MFD_HUGETLB);
	else
		fd = open(kind, O_RDWR | O_CREAT, 0600);
	check(fd >= 0 && (!ftruncate(fd, (off_t)len) || errno == EINVAL));
	return map(len, MAP_SHARED | MAP_NORESERVE, fd);
}

/*
 * Of what the test that runs this has prepared; prints what the test judges.
 * @more: "read", "written" or "forked" before, or as on the kernels
 * "before-6.11" or "before-5.14"; or "supplied" by the program
 */
void outside(const char *kind, size_t len, const char *more)
{
	struct bmm_report report = REPORT;
	char *p = made(kind, len), text[256];
	pid_t child = 0;

	if (!strcmp(more, "written") || !strcmp(more, "forked")) {
		cpus_made = 4;
		memset(p, 1, len);
	}
	if (!strcmp(more, "forked") && !(child = fork())) {
		pause();
		_exit(0);
	}
	if (!strcmp(more, "supplied"))
		supplied(p, len);
	if (!strcmp(more, "read"))
		faults_of(p, len, false);
	if (!strcmp(more, "before-6.11"))
		forbid_query();
	if (!strcmp(more, "before-5.14"))
		forbid_advice();
	asked = 0;
	check(bmm_populate(p, len, NULL, &report) == report.error);
	bmm_report_text(&report, text, sizeof(text));
	if (report.error) /* in a full cgroup, printing takes a page */
		madvise(p, len, MADV_DONTNEED);
	printf("{\"error\": %d, \"cause\": %d, \"done\": %zu, \"reached\": %zu, "
	       "\"failed\": %zu, \"failed_len\": %zu, \"threads\": %u, "
	       "\"asked\": %zu, \"text\": \"%s\", \"faults\": %ld}\n",
	       -report.error, report.cause, report.done,
	       (size_t)((char *)report.reached - p),
	       report.failed ? (size_t)((char *)report.failed - p) : 0,
	       report.failed_len, report.threads, asked, text,
	       report.error ? -1 : faults_of(p, len, true));
	if (child)
		kill(child, SIGKILL);
}
