// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm_stage(): files into one memory. The threads of bmm_populate() do it: each
 * populates a slice, and reads into it what belongs there, so that some read
 * while others have pages made; or, where pages are small, reads into a buffer
 * and has them made of that. What is in the page cache is copied from there,
 * a few pages at a time, as long as the CPU's cache has those just zeroed; the
 * rest is read from the disk around the page cache (O_DIRECT).
 */
#include <errno.h>
#include <sys/mman.h>

#include "bmm_host.h"
#include "stage.h"

/* Where it failed, in terms of files: the memory is gone when this is read. */
static void locate_failure(struct staging *all)
{
	struct bmm_report *report = &all->report;
	uintptr_t at = (uintptr_t)report->failed;

	if (report->failed_len && all->start) {
		all->memory->failed = stage_file_at(all, at);
		all->memory->at = at - (uintptr_t)all->start -
				  all->files[all->memory->failed].offset;
	}
	report->failed = report->slow = report->reached = NULL;
	report->failed_len = 0;
}

static int read_files(struct staging *all, const struct bmm_options *options)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
	struct bmm_range ranges[BMM_RANGES_MAX];
	int error;

	for (i = 0; i < all->count; i++)
		ranges[i] = (struct bmm_range){
			.addr = all->start + all->files[i].offset,
			.len = round_up(all->files[i].len, page),
		};
	error = populate_staged(ranges, all->count, options, &all->report, all);
	locate_failure(all);
	return error;
}

static int stage_all(struct staging *all, const struct bmm_options *options)
{
	int error = stage_open(all);

	if (!error)
		error = stage_map(all);
	if (!error)
		error = read_files(all, options);
	if (!error)
		error = stage_compare(all);
	stage_unmap(all);
	return error ? error : stage_seal(all);
}

/* Has the report of why a program's arguments are refused, if they are. */
static void check_stage(const struct bmm_memory *memory, size_t count,
			const struct bmm_options *options,
			struct bmm_report *report)
{
	struct bmm_options copy;

	report->error = options_copy(&copy, options);
	if (report->error) {
		report->cause = options_cause(report->error);
		return;
	}
	if (memory->size != sizeof(*memory))
		report->cause = BMM_CAUSE_SIZE;
	else if (!count || count > BMM_RANGES_MAX)
		report->cause = BMM_CAUSE_COUNT;
	else if (copy.flags & ~(BMM_ON_NODE | BMM_COMPACT))
		report->cause = BMM_CAUSE_FLAGS;
	else if (copy.ready)
		report->cause = BMM_CAUSE_OPTION;
	if (report->cause)
		report->error = -EINVAL;
}

/**
 * bmm_stage() - read files into one memory, as fast as the disk allows
 * @memory:   which pages the memory has; result: its descriptor
 * @files:   what to read; result: where each is in the memory
 * @count:   at most BMM_RANGES_MAX
 * @options: or NULL for the defaults; BMM_ON_NODE, BMM_COMPACT, threads and
 *           progress, which counts bytes of the memory
 * @report:  how long it took, and what went wrong, without addresses; or NULL
 *
 * Memory is a memfd, or a program's own file on tmpfs or hugetlbfs. It has the
 * files in the order given, each at a multiple of the page size (BMM_THP: of
 * that of a transparent huge page), so that each can be mapped by itself; what
 * is between them is zero. To use it: mmap(NULL, len, PROT_READ, MAP_SHARED,
 * fd, 0).
 *
 * Several threads read at once, each into pages that it has just made: from the
 * page cache what is there, else around it (O_DIRECT), and by way of it where
 * the file system has no O_DIRECT. No more memory is taken than what the files
 * need, and the threads' stacks; for memory in small pages, 2 MiB for each of
 * 16 threads at most. Pages come from the nodes as those of bmm_populate() do.
 *
 * A memfd is sealed (F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL):
 * neither this process nor any other can change it, and @fd is for reading
 * only. A program's own file cannot be sealed; no mapping of it is left.
 *
 * The size and the times of each file are compared before and after: what is
 * stored meanwhile by write() or truncate() is an error. Not noticed is what is
 * stored by way of a mapping and has not been written back, and what is within
 * the same tick of the file system's clock. After an error there is no memory,
 * and a program's own file is empty, or as it was if it was refused.
 *
 * Like bmm_populate(), it takes no thread's signals, does not call malloc()
 * itself, and needs 64 KiB of stack.
 *
 * Return: 0, or a negative error number of errno.h; but for wrong arguments
 * @memory tells which file, and where in it. EINVAL: an argument is wrong, or
 * the file for the result is not on tmpfs or hugetlbfs or has pages already;
 * E2BIG: an option of a newer version; EFBIG: too many bytes for an address
 * space. With the cause BMM_CAUSE_FILE: that of open(2) or read(2), EIO from a
 * broken disk, EISDIR or ESPIPE for what is no regular file. ESTALE with
 * BMM_CAUSE_CHANGED: a file changed meanwhile. EBUSY with BMM_CAUSE_SEAL: the
 * memory could not be sealed. ENOMEM or ENODEV with BMM_CAUSE_POOL: too few
 * huge pages are free, or there are none of that size. Else as bmm_populate().
 */
int bmm_stage(struct bmm_memory *memory, struct bmm_file *files, size_t count,
	      const struct bmm_options *options, struct bmm_report *report)
{
	struct staging all = { .memory = memory,
			       .files = files,
			       .count = count,
			       .page = (size_t)sysconf(_SC_PAGESIZE),
			       .fd = -1,
			       .copies = -1 };
	uint64_t start = bmm_host_clock();
	int cancel;

	if (!report_is_valid(report))
		return -EINVAL;
	all.report.size = sizeof(all.report);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	check_stage(memory, count, options, &all.report);
	if (!all.report.error) {
		memory->failed = count;
		memory->at = 0;
		if (stage_all(&all, options))
			stage_undo(&all);
		else
			memory->fd = all.fd;
		stage_close(&all);
	}
	all.report.ns = bmm_host_clock() - start;
	report_copy(report, &all.report);
	pthread_setcancelstate(cancel, NULL);
	return all.report.error;
}
