// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Why a range could not be populated, or was slow. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "populate.h"

/* In a pagemap entry; 6.13 and 6.14 show a guard as swapped out. */
#define GUARD	(1ULL << 58) /* since Linux 6.15 */
#define SWAPPED (1ULL << 62)

#define LAST "thp_fault_fallback " /* what is behind it is not read */

/* Adds what a line says if its name begins with @name. */
static void add_count(unsigned long *sum, const char *line, const char *name)
{
	if (!strncmp(line, name, strlen(name)))
		*sum += strtoul(line + strcspn(line, " "), NULL, 10);
}

static void add_counts(struct pressure *pressure, const char *line)
{
	add_count(&pressure->stalls, line, "allocstall_");
	add_count(&pressure->compactions, line, "compact_stall ");
	add_count(&pressure->failures, line, "compact_fail ");
	add_count(&pressure->huge, line, "thp_fault_alloc ");
	add_count(&pressure->small, line, LAST);
}

/* Each call sums up the counters of all CPUs: the fewer, the better. */
static void read_counters(struct pressure *pressure, char *text, size_t size)
{
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	char *line = text, *end;
	size_t kept = 0;
	ssize_t got;

	*pressure = (struct pressure){ .known = fd >= 0 };
	if (fd < 0)
		return;
	while (strncmp(line, LAST, strlen(LAST)) &&
	       (got = read(fd, text + kept, size - kept - 1)) > 0) {
		text[kept + (size_t)got] = 0;
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			add_counts(pressure, line);
			if (!strncmp(line, LAST, strlen(LAST)))
				break;
		}
		kept = strlen(line);
		if (!end)
			memmove(text, line, kept + 1);
	}
	close(fd);
}

/* Not inline, as the next: its buffer must not be on the stack during the work. */
__attribute__((noinline)) void pressure_read(struct pressure *pressure)
{
	char text[2048];

	read_counters(pressure, text, sizeof(text));
}

/* By a thread that may have a stack of 16 KiB. */
__attribute__((noinline)) void pressure_read_little(struct pressure *pressure)
{
	char text[1024];

	read_counters(pressure, text, sizeof(text));
}

/* Of the calling thread. */
void usage_read(struct thread_usage *usage)
{
	struct rusage now = { 0 };

	getrusage(RUSAGE_THREAD, &now);
	usage->ns = (uint64_t)(now.ru_utime.tv_sec + now.ru_stime.tv_sec) *
			    1000000000 +
		    (uint64_t)(now.ru_utime.tv_usec + now.ru_stime.tv_usec) *
			    1000;
	usage->waits = now.ru_nvcsw;
	usage->preemptions = now.ru_nivcsw;
}

/* Whether it has had less than half of @ns, and has waited for nothing. */
bool was_preempted(const struct thread_usage *before, uint64_t ns)
{
	struct thread_usage now;

	usage_read(&now);
	return now.waits == before->waits &&
	       now.preemptions > before->preemptions &&
	       now.ns - before->ns < ns / 2;
}

/* Why a piece was slow, from what has happened since, on all of the machine. */
enum bmm_cause cause_of_slowness(const struct workers *workers,
				 const struct pressure *before)
{
	struct pressure now;

	if (workers->slow_preempted)
		return BMM_CAUSE_PREEMPTED;
	pressure_read(&now);
	if (!before->known)
		return BMM_CAUSE_UNKNOWN;
	if (now.compactions > before->compactions)
		return BMM_CAUSE_COMPACTION;
	return now.stalls > before->stalls ? BMM_CAUSE_RECLAIM :
					     BMM_CAUSE_UNKNOWN;
}

/* Why MADV_POPULATE_READ is not to be had. */
enum bmm_cause cause_of_no_reading(void)
{
	bool filter = syscall(SYS_madvise, NULL, 0UL, MADV_POPULATE_READ) &&
		      errno != EINVAL;

	return filter ? BMM_CAUSE_FILTER : BMM_CAUSE_KERNEL;
}

/* Opens no file: in a full cgroup none can be opened. */
bool is_hole(uintptr_t page)
{
	unsigned char resident;

	return mincore((void *)page, 1, &resident) && errno == ENOMEM;
}

/*
 * EINVAL where the mapping allows it. The kernel reads for another process,
 * even if that is this one, without heed to the keys of a thread; and never
 * what has no pages.
 */
static enum bmm_cause why_invalid(uintptr_t page, bool known)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)page, 1 };

	if (syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL,
		    0UL) == 1)
		return known ? BMM_CAUSE_KEY : BMM_CAUSE_PROTECTED;
	return errno == EFAULT ? BMM_CAUSE_SPECIAL : BMM_CAUSE_UNKNOWN;
}

/* Huge pages that are free on a node, or, -1, on all. */
static unsigned long free_on(int node, size_t page)
{
	char path[128], text[32], home[48] = "kernel/mm";

	if (node >= 0)
		snprintf(home, sizeof(home), "devices/system/node/node%d", node);
	snprintf(path, sizeof(path),
		 "/sys/%s/hugepages/hugepages-%zukB/free_hugepages", home,
		 page / KIB);
	return kernel_text(path, text, sizeof(text)) ? strtoul(text, NULL, 10) :
						       0;
}

/* Of the nodes that the page may come from. */
static unsigned long free_for(const struct workers *workers, size_t page)
{
	int bind = extent_at(workers, workers->failure.failed)->bind;
	unsigned long sum = 0;
	struct nodes nodes;
	unsigned int i;

	if (bind >= 0)
		return free_on(bind, page);
	if (!nodes_several() ||
	    nodes_of((void *)workers->failure.failed, &nodes) >= 0)
		return free_on(-1, page);
	for (i = 0; i < NODES_MAX; i++)
		if (SET_HAS(&nodes, i))
			sum += free_on((int)i, page);
	return sum;
}

/* EFAULT in what has pages of the usual size. */
static enum bmm_cause why_faulted(uintptr_t page, const struct map *map)
{
	uint64_t entry = 0;
	bool known = pages_entry(page, &entry);

	if (entry & GUARD)
		return BMM_CAUSE_GUARD;
	if (!(map->flags & ANONYMOUS))
		return BMM_CAUSE_BACKING;
	return known && !(entry & SWAPPED) ? BMM_CAUSE_USERFAULT :
					     BMM_CAUSE_PROTECTED;
}

/*
 * Returns the cause, and sets the error MADV_POPULATE_WRITE has for it, and the
 * bytes of the page: a small range was not asked for them before Linux 6.11.
 */
static enum bmm_cause why_failed(struct workers *workers, int *error)
{
	bool read = workers->options.flags & BMM_READ, known;
	const struct page_result *failure = &workers->failure;
	struct map map = { 0 };

	if (is_hole(failure->failed)) {
		*error = -ENOMEM;
		return BMM_CAUSE_HOLE;
	}
	known = map_at(failure->failed, &map);
	if (map.page > workers->report.failed_len)
		workers->report.failed_len = map.page;
	if (known && !(map.flags & (read ? READABLE : WRITABLE))) {
		*error = -EINVAL;
		return BMM_CAUSE_PROTECTED;
	}
	switch (-failure->error) {
	case EINVAL:
		return why_invalid(failure->failed, known);
	case EHWPOISON:
		return BMM_CAUSE_POISONED;
	case ENOMEM:
		return BMM_CAUSE_MEMORY;
	case EFAULT:
		if (!known)
			return BMM_CAUSE_UNKNOWN;
		if (map.page <= (size_t)sysconf(_SC_PAGESIZE))
			return why_faulted(failure->failed, &map);
		return free_for(workers, map.page) ? BMM_CAUSE_LIMIT :
						     BMM_CAUSE_POOL;
	case EPERM:
	case ENOSYS:
		return BMM_CAUSE_FILTER;
	default:
		return BMM_CAUSE_UNKNOWN;
	}
}

/* Why the range failed, if it did; completes the report. */
enum bmm_cause cause_of_failure(struct workers *workers)
{
	switch (workers->report.error) {
	case 0:
		return BMM_CAUSE_NONE;
	case -ECANCELED:
		return workers->report.failed_len ? BMM_CAUSE_READY :
						    BMM_CAUSE_CANCELLED;
	case -ECHILD:
		return BMM_CAUSE_FORKED;
	default:
		workers->report.failed = (void *)workers->failure.failed;
		workers->report.failed_len = workers->failure.len;
		if (workers->failure.cause)
			return workers->failure.cause;
		return why_failed(workers, &workers->report.error);
	}
}
