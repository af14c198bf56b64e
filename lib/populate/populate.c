// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* bmm_populate() and bmm_clear_parallel(): arguments, places, reports. */
#include <errno.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

/* What of a call is refused, and why; nothing was done. */
struct refusal {
	uintptr_t addr;
	size_t len; /* of a range; 0: something else is wrong */
	int error;
	enum bmm_cause cause;
};

static int refuse(struct bmm_report *to, const struct refusal *refusal)
{
	struct bmm_report report = { .reached = (void *)refusal->addr,
				     .error = refusal->error,
				     .cause = refusal->cause };

	if (refusal->len) {
		report.failed = (void *)refusal->addr;
		report.failed_len = refusal->len;
	}
	report_copy(to, &report);
	return refusal->error;
}

static void populate_slice(struct worker *worker, const struct slice *slice,
			   struct page_result *result)
{
	pages_populate(&worker->workers->pages, slice->from, slice->to,
		       &slice->segment->map, result);
}

static void clear_slice(struct worker *worker, const struct slice *slice,
			struct page_result *result)
{
	(void)worker;
	(void)result;
	bmm_clear_streaming((void *)slice->from, slice->to - slice->from);
}

static void look_around(struct workers *workers)
{
	struct maps maps;
	bool known = workers->len >= LEAST && maps_open(&maps);

	workers->bound = known && workers->len >= SMALL && nodes_several();
	find_segments(workers, known ? &maps : NULL);
	if (known)
		maps_close(&maps);
}

/* Whether new pages may be had from the nodes that the program has chosen. */
static int try_nodes(const struct workers *workers, struct refusal *refusal)
{
	const struct extent *extent = workers->extents, *end;
	int tried = POLICY_NONE;

	for (end = extent + workers->extents_nr; extent < end; extent++) {
		if (extent->bind == POLICY_NONE || extent->bind == tried)
			continue;
		tried = extent->bind;
		refusal->addr = extent->start;
		refusal->len = extent->end - extent->start;
		if (!nodes_online((unsigned int)tried))
			return -EINVAL;
		refusal->error = policy_set(MODE_BIND, (unsigned int)tried);
		if (refusal->error)
			return refusal->error;
	}
	return 0;
}

/* The caller works too, bound like its threads, and is then restored. */
static int run_on_nodes(struct workers *workers, struct refusal *refusal)
{
	int error;

	workers->changes = workers->binds || workers->prefer >= 0;
	if (workers->changes && policy_get(&workers->policy)) {
		if (workers->binds)
			return -EPERM;
		workers->prefer = -1;
		workers->changes = false;
	}
	error = try_nodes(workers, refusal);
	if (workers->binds)
		policy_restore(&workers->policy);
	if (!error) {
		workers_run(workers);
		release_caller(workers);
	}
	return error;
}

static int populate(struct workers *workers, struct refusal *refusal,
		    struct bmm_report *report)
{
	struct pressure before = { 0 };

	refusal->error = pages_open(&workers->pages,
				    workers->options.flags & BMM_READ,
				    workers->len >= LEAST);
	if (refusal->error) {
		refusal->cause = cause_of_no_reading();
		return refuse(report, refusal);
	}
	workers->report.touched = workers->pages.touch;
	workers->work = workers->staging ? stage_slice : populate_slice;
	look_around(workers);
	allow_threads(workers);
	workers->watches = workers->len >= SMALL;
	if (workers->watches)
		pressure_read(&before);
	workers->asked = before;
	refusal->error = run_on_nodes(workers, refusal);
	restore_huge_pages(workers);
	if (refusal->error) {
		refusal->cause = BMM_CAUSE_NODE;
		return refuse(report, refusal);
	}
	workers->report.cause = cause_of_failure(workers);
	if (workers->report.slow_len && workers->len >= SMALL)
		workers->report.slow_cause = cause_of_slowness(workers, &before);
	report_copy(report, &workers->report);
	return workers->report.error;
}

static int clear(struct workers *workers, struct refusal *refusal,
		 struct bmm_report *report)
{
	(void)refusal;
	workers->work = clear_slice;
	find_segments(workers, NULL);
	allow_threads(workers);
	workers_run(workers);
	workers->report.cause = cause_of_failure(workers);
	report_copy(report, &workers->report);
	return workers->report.error;
}

typedef int operation_fn(struct workers *workers, struct refusal *refusal,
			 struct bmm_report *report);

/* A call by a program: for pages, or, @grain 1, for bytes. */
struct request {
	operation_fn *operation;
	size_t grain;	/* a power of two */
	uint32_t flags; /* those allowed */
	const struct bmm_range *ranges;
	size_t count;
	const struct staging *staging;
	struct bmm_options options;
};

/*
 * A small range by the kernel's call alone: anything else costs more than it
 * could save, unless it is several slices and resident, and is shared or read.
 * False: that, or it failed, and what follows finds out where and why; or the
 * program wants more than that call does.
 */
static bool populate_at_once(const struct request *request,
			     struct bmm_report *to)
{
	const struct bmm_options *options = &request->options;
	uintptr_t start = (uintptr_t)request->ranges->addr;
	size_t len = request->ranges->len, page = request->grain;
	bool read = options->flags & BMM_READ;
	uint64_t begin;

	if (!len || len > SMALL - page || start & (page - 1) ||
	    start + len + page < start || request->ranges->flags ||
	    options->progress || options->ready || options->flags & BMM_ON_NODE)
		return false;
	len = round_up(len, page);
	if (len > SLICE_MAX && pages_worth_reading(start, read))
		return false;
	begin = to ? bmm_host_clock() : 0;
	if (!populate_by_kernel(start, len, read))
		return false;
	if (to)
		report_copy(to, &(struct bmm_report){
					.reached = (void *)(start + len),
					.done = len,
					.ns = bmm_host_clock() - begin,
					.threads = 1,
				});
	return true;
}

/* A node that there is none of, where the number is out of range. */
static int node_number(uint32_t node)
{
	return node < NODES_MAX ? (int)node : (int)NODES_MAX;
}

static int add_range(struct workers *workers, const struct request *request,
		     const struct bmm_range *range, struct refusal *refusal)
{
	uintptr_t start = (uintptr_t)range->addr, end = start + range->len;
	size_t grain = request->grain;
	struct extent extent = { start, (end + grain - 1) & -grain,
				 POLICY_NONE };

	*refusal = (struct refusal){ start, range->len, -EINVAL,
				     BMM_CAUSE_RANGE };
	if (start & (grain - 1) || end < start || extent.end < end)
		return refusal->error;
	refusal->cause = BMM_CAUSE_FLAGS;
	if (range->flags & ~BMM_ON_NODE)
		return refusal->error;
	if (range->flags & BMM_ON_NODE)
		extent.bind = node_number(range->node);
	else if (request->options.flags & BMM_ON_NODE)
		extent.bind = node_number(request->options.node);
	refusal->cause = BMM_CAUSE_OVERLAP;
	return range->len && add_extent(workers, &extent) ? refusal->error : 0;
}

/* Returns the operation's error, or why nothing was done. */
static int run_ranges(struct workers *workers, const struct request *request,
		      struct refusal *refusal, struct bmm_report *report)
{
	size_t i;

	for (i = 0; i < request->count; i++)
		if (add_range(workers, request, &request->ranges[i], refusal))
			return refuse(report, refusal);
	*refusal = (struct refusal){ .addr = (uintptr_t)request->ranges->addr };
	if (!workers->len)
		return refuse(report, refusal);
	refusal->addr = workers->extents->start;
	return request->operation(workers, refusal, report);
}

/* Has the refusal of what is wrong with the options or the count, if anything. */
static void check_request(struct request *request,
			  const struct bmm_options *options,
			  struct refusal *refusal)
{
	refusal->error = options_copy(&request->options, options);
	if (refusal->error) {
		refusal->cause = options_cause(refusal->error);
		return;
	}
	if (request->options.flags & ~request->flags)
		refusal->cause = BMM_CAUSE_FLAGS;
	else if (request->count > BMM_RANGES_MAX)
		refusal->cause = BMM_CAUSE_COUNT;
	if (refusal->cause)
		refusal->error = -EINVAL;
}

/* Cancellation is disabled: other threads work on this one's behalf. */
static int run(struct request *request, const struct bmm_options *options,
	       struct bmm_report *report)
{
	struct refusal refusal = { 0 };
	struct workers workers; /* on the stack: there may be no other memory */
	int error, cancel;

	if (!report_is_valid(report))
		return -EINVAL;
	check_request(request, options, &refusal);
	if (request->count)
		refusal.addr = (uintptr_t)request->ranges->addr;
	if (refusal.error || !request->count)
		return refuse(report, &refusal);
	if (request->operation == populate && request->count == 1 &&
	    !request->staging && populate_at_once(request, report))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (workers_init(&workers, (unsigned int)request->count,
			 &request->options)) {
		workers.staging = request->staging;
		error = run_ranges(&workers, request, &refusal, report);
	} else {
		refusal.error = -ENOMEM;
		refusal.cause = BMM_CAUSE_MEMORY;
		error = refuse(report, &refusal);
	}
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
 * cgroup allow; on pages of more than 16 MiB, as many as may start at once.
 * What has to be read from a file is read by one of them, in order. They run on
 * the nodes that the memory comes from (mbind(2), set_mempolicy(2), else the
 * caller's node), block all signals except faults, and have ended when it
 * returns. The caller works too, bound to such a node if it was not; afterwards,
 * and in @progress and @ready, its affinity is what it was, but the system
 * remembers it as set explicitly.
 * With BMM_ON_NODE a page comes from that node or from none: as with any such
 * policy, the kernel may kill a process when the node is out of memory.
 *
 * After an error, everything before the report's @reached is done and usable;
 * some pages behind it may be resident, too.
 * In the child of a fork() in @progress or @ready nothing is certain, unless
 * the fork was in the last call, after which all is done.
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
 * ECANCELED: @progress cancelled, or @ready refused a piece. EPERM, EINVAL with
 * the cause BMM_CAUSE_NODE: the node cannot be chosen. EOPNOTSUPP: BMM_READ
 * before Linux 5.14, or a filter of system calls (causes BMM_CAUSE_KERNEL,
 * BMM_CAUSE_FILTER). EPERM, ENOSYS with BMM_CAUSE_FILTER: a filter forbids both
 * ways to populate. ECHILD: this is the child of a fork() in @progress or
 * @ready.
 */
int bmm_populate(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report)
{
	struct bmm_range range = { .addr = addr, .len = len };

	return bmm_populate_ranges(&range, 1, options, report);
}

/**
 * bmm_populate_ranges() - make several mappings resident ahead of use
 * @ranges:  in any order; none overlaps another
 * @count:   at most BMM_RANGES_MAX; 0 is a no-op
 * @options: or NULL for the defaults; a node of theirs is that of each range
 *           without a node of its own
 * @report:  how far it got, and what went wrong; or NULL
 *
 * Same as bmm_populate() of each, in ascending order of addresses, but by the
 * same threads: they work on all nodes at once, on pages of different sizes,
 * and none ends before the last range is done. What depends on the size of the
 * range depends on that of all together.
 *
 * Return: as bmm_populate(). EINVAL with the cause BMM_CAUSE_OVERLAP: two ranges
 * overlap; the report has the later of the array; nothing was done. ENOMEM with
 * a report that has no page: no memory for so many ranges; nothing was done.
 */
int bmm_populate_ranges(const struct bmm_range *ranges, size_t count,
			const struct bmm_options *options,
			struct bmm_report *report)
{
	struct request request = {
		.operation = populate,
		.grain = (size_t)sysconf(_SC_PAGESIZE),
		.flags = BMM_ON_NODE | BMM_READ | BMM_IN_ORDER | BMM_COMPACT,
		.ranges = ranges,
		.count = count,
	};

	return run(&request, options, report);
}

/* The part of bmm_stage() that is populate's: ranges that are read into. */
int populate_staged(const struct bmm_range *ranges, size_t count,
		    const struct bmm_options *options,
		    struct bmm_report *report, const struct staging *staging)
{
	struct request request = {
		.operation = populate,
		.grain = (size_t)sysconf(_SC_PAGESIZE),
		.flags = BMM_ON_NODE | BMM_COMPACT,
		.ranges = ranges,
		.count = count,
		.staging = staging,
	};

	return run(&request, options, report);
}

/**
 * bmm_clear_parallel() - zero a large resident range with several threads
 * @dst:     any alignment
 * @len:     bytes; 0 is a no-op
 * @options: or NULL for the defaults; no flag but BMM_IN_ORDER
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
	struct bmm_range range = { .addr = dst, .len = len };
	struct request request = { .operation = clear,
				   .grain = 1,
				   .flags = BMM_IN_ORDER,
				   .ranges = &range,
				   .count = 1 };

	return run(&request, options, report);
}
