// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* bmm_populate() and bmm_clear_parallel(): arguments, places, reports. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#define HUGE_SIZE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

static int refuse(struct bmm_report *to, void *addr, int error,
		  enum bmm_cause cause)
{
	struct bmm_report report = { .reached = addr,
				     .error = error,
				     .cause = cause };

	report_copy(to, &report);
	return error;
}

/* Spreads threads over the nodes of the memory, and where the caller may run. */
static void spread_threads(struct workers *workers)
{
	unsigned int i;

	for (i = 0; i < workers->segments_nr; i++)
		CPU_OR_S(sizeof(workers->nodes), workers->nodes.bits,
			 workers->nodes.bits, workers->segments[i].nodes.bits);
	workers->bound = SET_COUNT(&workers->nodes);
	if (!workers->bound)
		return;
	workers->self.home = node_of_worker(workers, 0);
	cpus_allowed(&workers->allowed);
	/* Where threads of other nodes help, the caller's is not theirs. */
	if (!workers->on_node && workers->node >= 0 &&
	    SET_COUNT(&workers->nodes) > 1)
		workers->mode = MODE_PREFERRED;
}

/* How many threads may work, the caller included. */
unsigned int limit_threads(struct workers *workers)
{
	struct cpus cpus = workers->allowed;
	unsigned int most = workers->bound ?
				    cpus_of_nodes(&workers->nodes, &cpus) :
				    cpus_allowed(&cpus);

	if (!most)
		return 1;
	most = lower(most, cpus_quota());
	return lower(THREADS_MAX, lower(most, workers->options.threads));
}

/* With base pages of 4 KiB it is the same on every processor. */
static size_t huge_page(void)
{
	char text[32];
	size_t size;

	if (sysconf(_SC_PAGESIZE) == 4096 ||
	    !kernel_text(HUGE_SIZE, text, sizeof(text)))
		return LEAST;
	size = strtoul(text, NULL, 10);
	return size && !(size & (size - 1)) ? size : LEAST;
}

/* How many, limit_threads() says if one thread turns out to be too few. */
static void allow_threads(struct workers *workers)
{
	unsigned int most = workers->options.threads;

	if (workers->end - workers->start < SMALL)
		return;
	if (workers->bound) /* even a single thread is bound to a node */
		spread_threads(workers);
	if (most == 1 || is_all_cold(workers))
		return;
	workers->huge = huge_page();
	scaling_start(&workers->scaling, lower(THREADS_MAX, most));
}

static void populate_slice(struct workers *workers, const struct slice *slice,
			   struct page_result *result)
{
	pages_populate(&workers->pages, slice->from, slice->to,
		       &slice->segment->map, result);
}

static void clear_slice(struct workers *workers, const struct slice *slice,
			struct page_result *result)
{
	(void)workers;
	(void)result;
	bmm_clear_streaming((void *)slice->from, slice->to - slice->from);
}

static void find_segments(struct workers *workers)
{
	size_t len = workers->end - workers->start;
	struct maps maps;

	if (len < LEAST || !maps_open(&maps))
		return;
	workers->bound = len >= SMALL && nodes_several();
	divide_segments(workers, &maps);
	maps_close(&maps);
}

/* The caller works too, bound like its threads, and is then restored. */
static int run_on_nodes(struct workers *workers)
{
	struct policy policy;
	struct cpus before;
	bool bound;
	int error = 0;

	if (workers->mode)
		error = policy_set(workers->mode, (unsigned int)workers->node,
				   &policy);
	if (error && workers->on_node)
		return error;
	bound = bind_worker(&workers->self, &before);
	workers_run(workers);
	if (bound)
		cpus_bind(&before);
	if (workers->mode && !error)
		policy_restore(&policy);
	return 0;
}

static int populate(struct workers *workers, struct bmm_report *report)
{
	size_t len = workers->end - workers->start;
	struct pressure before = { 0 };
	int error;

	if (workers->on_node && !nodes_online(workers->options.node))
		return refuse(report, (void *)workers->start, -EINVAL,
			      BMM_CAUSE_NODE);
	error = pages_open(&workers->pages, workers->options.flags & BMM_READ,
			   len >= LEAST);
	if (error)
		return refuse(report, (void *)workers->start, error,
			      cause_of_no_reading());
	workers->report.touched = workers->pages.touch;
	workers->work = populate_slice;
	find_segments(workers);
	allow_threads(workers);
	if (len >= SMALL)
		pressure_read(&before);
	error = run_on_nodes(workers);
	if (error)
		return refuse(report, (void *)workers->start, error,
			      BMM_CAUSE_NODE);
	workers->report.cause = cause_of_failure(workers);
	if (workers->report.slow_len && len >= SMALL)
		workers->report.slow_cause = cause_of_slowness(workers, &before);
	report_copy(report, &workers->report);
	return workers->report.error;
}

static int clear(struct workers *workers, struct bmm_report *report)
{
	workers->work = clear_slice;
	allow_threads(workers);
	workers_run(workers);
	workers->report.cause = cause_of_failure(workers);
	report_copy(report, &workers->report);
	return workers->report.error;
}

/*
 * A small range by the kernel's call alone: anything else costs more than it
 * could save, unless it is several slices and resident, and is shared or read.
 * False: that, or it failed, and what follows finds out where and why; or the
 * program wants more than that call does.
 */
static bool populate_at_once(uintptr_t start, uintptr_t end,
			     const struct bmm_options *options,
			     struct bmm_report *to)
{
	bool read = options->flags & BMM_READ;
	size_t len = end - start;
	uint64_t begin;

	if (len >= SMALL || options->progress || options->flags & BMM_ON_NODE ||
	    (len > SLICE_MAX && pages_worth_reading(start, read)))
		return false;
	begin = to ? bmm_host_clock() : 0;
	if (!populate_by_kernel(start, len, read))
		return false;
	if (to)
		report_copy(to, &(struct bmm_report){
					.reached = (void *)end,
					.done = len,
					.ns = bmm_host_clock() - begin,
					.threads = 1,
				});
	return true;
}

/*
 * Whole pieces of @grain bytes, a power of two; @flags are those allowed.
 * Cancellation is disabled: other threads work on this one's behalf.
 */
static int run(void *addr, size_t len, size_t grain, uint32_t flags,
	       const struct bmm_options *options, struct bmm_report *report,
	       int (*what)(struct workers *, struct bmm_report *))
{
	uintptr_t start = (uintptr_t)addr, end = start + len;
	uintptr_t whole = (end + grain - 1) & -grain;
	struct bmm_options taken;
	struct workers workers; /* on the stack: there may be no other memory */
	int error, cancel;

	if (!report_is_valid(report))
		return -EINVAL;
	error = options_copy(&taken, options);
	if (!error && (taken.flags & ~flags || start & (grain - 1) ||
		       end < start || whole < end))
		error = -EINVAL;
	if (error)
		return refuse(report, addr, error, BMM_CAUSE_ARGUMENT);
	if (!len)
		return refuse(report, addr, 0, BMM_CAUSE_NONE);
	if (what == populate && populate_at_once(start, whole, &taken, report))
		return 0;
	workers_init(&workers, start, whole, &taken);
	workers.on_node = taken.flags & BMM_ON_NODE;
	workers.mode = workers.on_node ? MODE_BIND : MODE_DEFAULT;
	workers.node = workers.on_node ? (int)taken.node : -1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = what(&workers, report);
	workers_free(&workers);
	pthread_setcancelstate(cancel, NULL);
	return error;
}

/**
 * bmm_populate() - make a mapping resident ahead of use
 * @addr:    first byte, at the start of a page
 * @len:     bytes, rounded up to whole pages; 0 is a no-op
 * @options: or NULL for the defaults
 * @report:  how far it got, and what went wrong; or NULL
 *
 * When it returns 0, every page is resident and writable, zeroed once, by the
 * kernel. The content of resident pages is not changed, and they cost next to
 * nothing, except for private ones of 4 KiB: a third of making them. Works on
 * private and shared memory, memfd and tmpfs, hugetlbfs, transparent huge
 * pages, DAX.
 *
 * Ranges of 64 MiB and more are shared by threads, as many as help: their
 * number grows while the total rate does, within the CPUs that affinity and
 * cgroup allow. What has to be read from a file is read by one of them, in
 * order. They run on the nodes that the memory comes from (mbind(2),
 * set_mempolicy(2), else the caller's node), block all signals except faults,
 * and have ended when it returns. The caller works too, bound to such a node if
 * it was not; afterwards its affinity is what it was, but the system remembers
 * it as set explicitly. With BMM_ON_NODE a page comes from that node or from
 * none: as with any such policy, the kernel may kill a process when the node is
 * out of memory.
 *
 * After an error, everything before the report's @reached is done and usable;
 * some pages behind it may be resident, too.
 * In the child of a fork() in @progress nothing is certain, unless the fork was
 * in the last call, after which all is done.
 *
 * It does not call malloc() itself; the C library may, to start a thread. None
 * is started in a signal handler that blocks its own signal, as handlers do
 * without SA_NODEFER, nor with one thread as the most: then it makes system
 * calls only, and needs 16 KiB of stack.
 *
 * Return: 0, or a negative error number of errno.h. EINVAL: @addr is not the
 * start of a page, the range wraps around, or an option is wrong; E2BIG: an
 * option of a newer version; nothing was done. Else as MADV_POPULATE_WRITE,
 * told apart by the report's cause: ENOMEM, EFAULT, EINVAL, EHWPOISON.
 * ECANCELED: @progress cancelled. EPERM, EINVAL with the cause BMM_CAUSE_NODE:
 * the node cannot be chosen. EOPNOTSUPP: BMM_READ before Linux 5.14, or a
 * filter of system calls (causes BMM_CAUSE_KERNEL, BMM_CAUSE_FILTER). EPERM,
 * ENOSYS with BMM_CAUSE_FILTER: a filter forbids both ways to populate. ECHILD:
 * this is the child of a fork() in @progress.
 */
int bmm_populate(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report)
{
	return run(addr, len, (size_t)sysconf(_SC_PAGESIZE),
		   BMM_ON_NODE | BMM_READ, options, report, populate);
}

/**
 * bmm_clear_parallel() - zero a large resident range with several threads
 * @dst:     any alignment
 * @len:     bytes; 0 is a no-op
 * @options: or NULL for the defaults; no flags
 * @report:  how long it took, and with how many threads; or NULL
 *
 * Same as bmm_clear_streaming(), but large ranges are zeroed at the rate of the
 * memory. Threads as for bmm_populate(), on all CPUs that the caller may use.
 * Memory that is not resident is better populated: the kernel zeroes it then.
 *
 * Return: 0, or a negative error number of errno.h. EINVAL: the range wraps
 * around, or an option is wrong; E2BIG: an option of a newer version; nothing
 * was done. ECANCELED, ECHILD: as for bmm_populate().
 */
int bmm_clear_parallel(void *dst, size_t len, const struct bmm_options *options,
		       struct bmm_report *report)
{
	return run(dst, len, 1, 0, options, report, clear);
}
