/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pools: the part of bulkmm.h, which includes this, that starts threads, and
 * that the core does without.
 */
#ifndef BULKMM_POPULATE_H
#define BULKMM_POPULATE_H

/* Flags of struct bmm_options. */
#define BMM_ON_NODE  1U /* node is set: take new pages only from there */
#define BMM_READ     2U /* populate for reading: shared files stay clean */
#define BMM_IN_ORDER 4U /* ready() is called in ascending address order */
#define BMM_COMPACT  8U /* memory is compacted for huge pages, in vain, too */

#define BMM_RANGES_MAX 1024U /* ranges of one call */

/**
 * struct bmm_range - a range of bmm_populate_ranges()
 * @addr:  first byte, at the start of a page
 * @len:   bytes, rounded up to whole pages; 0: the range is skipped
 * @flags: BMM_ON_NODE, or 0: as the options have it
 * @node:  memory node, with BMM_ON_NODE
 */
struct bmm_range {
	void *addr;
	size_t len;
	uint32_t flags;
	uint32_t node;
};

/**
 * struct bmm_options - how threads share a range
 * @size:     sizeof(struct bmm_options) in the calling program, as set by
 *            BMM_OPTIONS_INIT(.threads = 2, ...)
 * @flags:    BMM_ON_NODE, BMM_READ, BMM_IN_ORDER, BMM_COMPACT, or 0
 * @threads:  most threads that work at once, the caller included; 0: as many
 *            as help
 * @node:     memory node, with BMM_ON_NODE; a policy set on the range itself
 *            (mbind) takes precedence
 * @progress: called on the calling thread every few milliseconds with the bytes
 *            done so far; any return value but 0 cancels. May be NULL
 * @context:  passed to @progress and @ready
 * @ready:    called on the calling thread, one call at a time, with each piece
 *            that has been done, while the threads go on with the rest: each
 *            byte is in exactly one piece. The calling thread then only calls,
 *            unless @threads is 1. Any return value but 0 stops the rest, and
 *            the report has the piece. May be NULL
 * @piece:    most bytes of a piece: a range is divided at multiples of it,
 *            counted from its start, rounded up to whole pages; 0: 256 MiB
 *
 * A piece of which a byte failed is not passed to @ready. Both callbacks must
 * return: the threads go on with memory of this call (no longjmp(), exception
 * or pthread_exit()). Usually all fields but @size are zero.
 */
struct bmm_options {
	size_t size;
	uint32_t flags;
	uint32_t threads;
	uint32_t node;
	int (*progress)(void *context, size_t done, size_t len);
	void *context;
	int (*ready)(void *context, void *addr, size_t len);
	size_t piece;
};

#define BMM_OPTIONS_INIT(...) \
	{ .size = sizeof(struct bmm_options), __VA_ARGS__ }

/**
 * enum bmm_cause - why a range could not be populated, or was slow
 * @BMM_CAUSE_NONE:       no failure, or nothing was slow
 * @BMM_CAUSE_UNKNOWN:    the system does not say
 * @BMM_CAUSE_ARGUMENT:   an argument is wrong (before 0.1.1: any; now each has
 *                        a cause of its own, from BMM_CAUSE_SIZE on)
 * @BMM_CAUSE_NODE:       the node does not exist, or policies are forbidden
 *                        here; nothing was done
 * @BMM_CAUSE_HOLE:       nothing is mapped there
 * @BMM_CAUSE_PROTECTED:  the mapping does not allow it; with EFAULT, a guard
 *                        page or userfaultfd, which could not be told apart
 * @BMM_CAUSE_SPECIAL:    a mapping that cannot be populated, such as a device's
 * @BMM_CAUSE_POOL:       no huge page is left in the pool
 * @BMM_CAUSE_BACKING:    the file is too short, its file system is full or has
 *                        failed (a disk that cannot be read), or as with
 *                        BMM_CAUSE_USERFAULT
 * @BMM_CAUSE_POISONED:   a page of it has failed (hardware memory error)
 * @BMM_CAUSE_MEMORY:     out of memory: the cgroup, the node or the machine
 * @BMM_CAUSE_CANCELLED:  @progress cancelled
 * @BMM_CAUSE_FORKED:     this is the child of a fork() in @progress or @ready
 * @BMM_CAUSE_COMPACTION: the kernel moved pages to make huge ones
 * @BMM_CAUSE_RECLAIM:    the kernel had to free memory first
 * @BMM_CAUSE_GUARD:      a guard page (MADV_GUARD_INSTALL)
 * @BMM_CAUSE_KEY:        a protection key of the calling thread forbids it
 * @BMM_CAUSE_USERFAULT:  the program has the page to supply (userfaultfd), and
 *                        the kernel may not ask for it
 * @BMM_CAUSE_LIMIT:      the pool has huge pages left: the cgroup allows no
 *                        more, others have reserved them, the file is too
 *                        short, or as with BMM_CAUSE_USERFAULT
 * @BMM_CAUSE_KERNEL:     the kernel cannot, or a filter of system calls says so
 * @BMM_CAUSE_FILTER:     a filter of system calls forbids it
 * @BMM_CAUSE_PREEMPTED:  other work had the thread's CPU
 * @BMM_CAUSE_RANGE:      the range does not start at a page, or wraps around
 *                        the end of the address space; nothing was done
 * @BMM_CAUSE_OVERLAP:    the range overlaps another; nothing was done
 * @BMM_CAUSE_READY:      @ready refused a piece
 * @BMM_CAUSE_FRAGMENTED: the kernel can make no huge page now
 * @BMM_CAUSE_NO_HUGE:    the mapping allows no huge page, or nothing is there
 * @BMM_CAUSE_FILE:       a file cannot be opened or read
 * @BMM_CAUSE_CHANGED:    a file changed while it was read
 * @BMM_CAUSE_SEAL:       memory could not be sealed
 * @BMM_CAUSE_SIZE:       the size of the options or the memory is not set;
 *                        nothing was done, as with those that follow
 * @BMM_CAUSE_NEWER:      an option of a newer version is set
 * @BMM_CAUSE_FLAGS:      a flag that the function, or a range, does not take
 * @BMM_CAUSE_OPTION:     threads, ready or piece, which the function does not
 *                        take
 * @BMM_CAUSE_COUNT:      more than BMM_RANGES_MAX, or no file
 * @BMM_CAUSE_PAGE:       page of the memory: no power of two, or set for a file
 * @BMM_CAUSE_FD:         fd of the memory: no file on tmpfs or hugetlbfs, or
 *                        one that has pages
 * @BMM_CAUSE_TOTAL:      the files are too large for an address space
 */
enum bmm_cause {
	BMM_CAUSE_NONE,
	BMM_CAUSE_UNKNOWN,
	BMM_CAUSE_ARGUMENT,
	BMM_CAUSE_NODE,
	BMM_CAUSE_HOLE,
	BMM_CAUSE_PROTECTED,
	BMM_CAUSE_SPECIAL,
	BMM_CAUSE_POOL,
	BMM_CAUSE_BACKING,
	BMM_CAUSE_POISONED,
	BMM_CAUSE_MEMORY,
	BMM_CAUSE_CANCELLED,
	BMM_CAUSE_FORKED,
	BMM_CAUSE_COMPACTION,
	BMM_CAUSE_RECLAIM,
	BMM_CAUSE_GUARD,
	BMM_CAUSE_KEY,
	BMM_CAUSE_USERFAULT,
	BMM_CAUSE_LIMIT,
	BMM_CAUSE_KERNEL,
	BMM_CAUSE_FILTER,
	BMM_CAUSE_PREEMPTED,
	BMM_CAUSE_RANGE,
	BMM_CAUSE_OVERLAP,
	BMM_CAUSE_READY,
	BMM_CAUSE_FRAGMENTED,
	BMM_CAUSE_NO_HUGE,
	BMM_CAUSE_FILE,
	BMM_CAUSE_CHANGED,
	BMM_CAUSE_SEAL,
	BMM_CAUSE_SIZE,
	BMM_CAUSE_NEWER,
	BMM_CAUSE_FLAGS,
	BMM_CAUSE_OPTION,
	BMM_CAUSE_COUNT,
	BMM_CAUSE_PAGE,
	BMM_CAUSE_FD,
	BMM_CAUSE_TOTAL
};

/**
 * struct bmm_report - what became of a range
 * @size:       sizeof(struct bmm_report) in the calling program, which sets it,
 *              as by BMM_REPORT_INIT
 * @done:       bytes done
 * @reached:    everything of the ranges before this address is done
 * @failed:     the page that failed, the lowest if there are several; or the
 *              range that was refused, or the piece that @ready refused
 * @failed_len: its bytes; 0 if nothing failed
 * @ns:         time it took
 * @slow:       a piece that took more than eight times as long as the others
 * @slow_len:   its bytes; 0 if there was none
 * @slow_ns:    time it took
 * @usual_ns:   time that as many bytes took elsewhere
 * @error:      0, or the negative error number that was returned
 * @cause:      why it failed
 * @slow_cause: why the piece was slow
 * @threads:    most threads that worked at once, the caller included
 * @touched:    1 if pages were touched one by one: the kernel is older than
 *              MADV_POPULATE_WRITE (5.14), or forbids or ignores it
 * @huge:       bytes in huge pages, in calls of 64 MiB and more; what is
 *              transparent is counted from Linux 6.7 on
 * @small:      bytes for which no huge page was tried any more, as memory was
 *              compacted for others in vain
 */
struct bmm_report {
	size_t size;
	size_t done;
	void *reached;
	void *failed;
	size_t failed_len;
	uint64_t ns;
	void *slow;
	size_t slow_len;
	uint64_t slow_ns;
	uint64_t usual_ns;
	int error;
	enum bmm_cause cause;
	enum bmm_cause slow_cause;
	uint32_t threads;
	uint32_t touched;
	size_t huge;
	size_t small;
};

#define BMM_REPORT_INIT { .size = sizeof(struct bmm_report) }

int bmm_populate(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report) BMM_ATTR(BMM_MUST_CHECK);
int bmm_populate_ranges(const struct bmm_range *ranges, size_t count,
			const struct bmm_options *options,
			struct bmm_report *report) BMM_ATTR(BMM_MUST_CHECK);
int bmm_collapse(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report) BMM_ATTR(BMM_MUST_CHECK);
/* One line on what failed, or was slow; empty if there is nothing to tell. */
size_t bmm_report_text(const struct bmm_report *report, char *buf, size_t size)
	BMM_ATTR(BMM_NONNULL(1), BMM_WRITES(2, 3));

int bmm_clear_parallel(void *dst, size_t len, const struct bmm_options *options,
		       struct bmm_report *report)
	BMM_ATTR(BMM_MUST_CHECK, BMM_WRITES(1, 2));

#define BMM_THP 1U /* as the page size of a memory: transparent huge pages */

/**
 * struct bmm_file - a file of bmm_stage()
 * @path:   its name
 * @offset: result: where in the memory it begins, a multiple of its page size
 * @len:    result: its bytes
 */
struct bmm_file {
	const char *path;
	size_t offset;
	size_t len;
};

/**
 * struct bmm_memory - a memory that files are read into
 * @size:   sizeof(struct bmm_memory), as set by BMM_MEMORY_INIT(.fd = -1, ...)
 * @page:   bytes of its huge pages (hugetlb), a power of two; BMM_THP:
 *          transparent ones, where the system has them for shared memory; 0:
 *          pages of the usual size. For a file on hugetlbfs: 0
 * @len:    result: its bytes: up to the end of the last file, and of the page
 *          if that is of hugetlb
 * @failed: result: number of the file that something is wrong with; or the
 *          number of files
 * @at:     result: byte of that file, rounded down to a page
 * @fd:     -1; or a file on tmpfs or hugetlbfs that has no pages, open for
 *          reading and writing, which becomes the memory. Result: the memory,
 *          the caller's to close
 */
struct bmm_memory {
	size_t size;
	size_t page;
	size_t len;
	size_t failed;
	size_t at;
	int fd;
};

#define BMM_MEMORY_INIT(...) { .size = sizeof(struct bmm_memory), __VA_ARGS__ }

int bmm_stage(struct bmm_memory *memory, struct bmm_file *files, size_t count,
	      const struct bmm_options *options, struct bmm_report *report)
	BMM_ATTR(BMM_MUST_CHECK, BMM_NONNULL(1));

#endif
