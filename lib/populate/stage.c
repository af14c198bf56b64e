// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm_stage(): files into one memory. The threads of bmm_populate() do it: each
 * populates a slice, and reads into it what belongs there, so that some read
 * while others have pages made. What is in the page cache is copied from there,
 * a few pages at a time, as long as the CPU's cache has those just zeroed; the
 * rest is read from the disk around the page cache (O_DIRECT).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bmm_host.h"
#include "populate.h"

#define CHUNK  (2 * MIB) /* copied at once; half of a CPU's own cache or so */
#define SEALS  (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define IN_LOG 26 /* of a huge page's size, in the flags of memfd_create() */

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3; some systems refuse memfds without it */
#define MFD_NOEXEC_SEAL 8U
#endif

/* A file that is read. */
struct source {
	int cached, direct; /* descriptors; -1: that cannot be had */
	char *map;	    /* only asked what is in the cache; or MAP_FAILED */
	bool seen;	    /* the system tells what is */
	struct stat status; /* before it was read */
};

struct staging {
	struct bmm_memory *memory;
	struct bmm_file *files;
	size_t count;
	struct source *sources;
	char *start; /* of the mapping, or NULL */
	size_t mapped;
	size_t page; /* bytes of the memory's pages */
	int fd;
	bool owns_fd;
	struct bmm_report report;
};

static size_t round_up(size_t size, size_t page)
{
	return (size + page - 1) & -page;
}

static int fail(struct staging *all, int error, enum bmm_cause cause)
{
	all->report.error = -error;
	all->report.cause = cause;
	return -error;
}

/* Waits until a lease is given back, but not for the writer of a FIFO. */
static int open_cached(const char *path, int flags)
{
	int fd = open(path, flags);
	struct stat status;

	if (fd < 0 && errno == EAGAIN && !stat(path, &status) &&
	    S_ISREG(status.st_mode))
		fd = open(path, flags & ~O_NONBLOCK);
	return fd;
}

/* Opens a file; @failed is its number until that has worked. */
static int open_source(struct staging *all, size_t number)
{
	const char *path = all->files[number].path;
	struct source *source = &all->sources[number];
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct map map = { 0 };
	size_t len;

	all->memory->failed = number;
	source->cached = open_cached(path, flags);
	if (source->cached < 0 || fstat(source->cached, &source->status))
		return fail(all, errno, BMM_CAUSE_FILE);
	if (!S_ISREG(source->status.st_mode))
		return fail(all,
			    S_ISDIR(source->status.st_mode) ? EISDIR : ESPIPE,
			    BMM_CAUSE_FILE);
	len = (size_t)source->status.st_size;
	all->files[number].len = len;
	if (!len)
		return 0;
	source->map = mmap(NULL, len, PROT_READ, MAP_SHARED, source->cached, 0);
	if (source->map == MAP_FAILED || !map_at((uintptr_t)source->map, &map))
		map.flags = READ_AHEAD;
	source->seen = map.flags & CACHE_SEEN;
	if (map.flags & READ_AHEAD) /* else it is in memory */
		source->direct = open(path, flags | O_DIRECT);
	return 0;
}

/* Whether the name still led to the same file when it was opened once more. */
static bool is_same(const struct source *source)
{
	struct stat status;

	return source->direct < 0 || (!fstat(source->direct, &status) &&
				      status.st_ino == source->status.st_ino &&
				      status.st_dev == source->status.st_dev);
}

static int open_sources(struct staging *all)
{
	size_t bytes = all->count * sizeof(*all->sources), i;
	struct source *sources;
	int error;

	sources = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sources == MAP_FAILED)
		return fail(all, ENOMEM, BMM_CAUSE_MEMORY);
	all->sources = sources;
	for (i = 0; i < all->count; i++)
		sources[i] = (struct source){ -1, -1, MAP_FAILED, false, { 0 } };
	for (i = 0; i < all->count; i++) {
		error = open_source(all, i);
		if (error)
			return error;
		if (!is_same(&sources[i]))
			return fail(all, ESTALE, BMM_CAUSE_CHANGED);
	}
	all->memory->failed = all->count;
	return 0;
}

static void close_sources(struct staging *all)
{
	struct source *source = all->sources;
	size_t i;

	if (!source)
		return;
	for (i = 0; i < all->count; i++, source++) {
		if (source->map != MAP_FAILED)
			munmap(source->map, all->files[i].len);
		if (source->direct >= 0)
			close(source->direct);
		if (source->cached >= 0)
			close(source->cached);
	}
	munmap(all->sources, all->count * sizeof(*all->sources));
}

/* What has been read is what was there before, and all of it. */
static int check_sources(struct staging *all)
{
	const struct stat *before;
	struct stat now;
	size_t i;

	for (i = 0; i < all->count; i++) {
		before = &all->sources[i].status;
		if (fstat(all->sources[i].cached, &now)) {
			all->memory->failed = i;
			return fail(all, errno, BMM_CAUSE_FILE);
		}
		if (now.st_size == before->st_size &&
		    now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
		    now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
		    now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
		    now.st_ctim.tv_nsec == before->st_ctim.tv_nsec)
			continue;
		all->memory->failed = i;
		return fail(all, ESTALE, BMM_CAUSE_CHANGED);
	}
	return 0;
}

/* Where each file begins; returns the bytes of all, SIZE_MAX if too many. */
static size_t place_files(const struct staging *all)
{
	size_t align = all->memory->page == BMM_THP ? huge_page() : all->page;
	size_t most = PTRDIFF_MAX - 2 * align, at = 0, i;

	for (i = 0; i < all->count; i++) {
		at = round_up(at, align);
		all->files[i].offset = at;
		if (at > most || all->files[i].len > most - at)
			return SIZE_MAX;
		at += all->files[i].len;
	}
	return all->page > (size_t)sysconf(_SC_PAGESIZE) ?
		       round_up(at, all->page) :
		       at;
}

/* Of the program's file, which is to have no pages: they would be shown. */
static int use_file(struct staging *all)
{
	struct stat status;
	struct statfs fs;

	if (all->memory->page > BMM_THP)
		return fail(all, EINVAL, BMM_CAUSE_ARGUMENT);
	if (fstatfs(all->memory->fd, &fs) || fstat(all->memory->fd, &status))
		return fail(all, errno, BMM_CAUSE_ARGUMENT);
	if ((fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC) ||
	    status.st_blocks)
		return fail(all, EINVAL, BMM_CAUSE_ARGUMENT);
	if (fs.f_type == HUGETLBFS_MAGIC)
		all->page = (size_t)fs.f_bsize;
	all->fd = all->memory->fd; /* from here on undo() empties it */
	return 0;
}

static int make_memfd(struct staging *all)
{
	size_t page = all->memory->page;
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	if (page & (page - 1))
		return fail(all, EINVAL, BMM_CAUSE_ARGUMENT);
	if (page > BMM_THP) {
		flags |= MFD_HUGETLB | (unsigned int)__builtin_ctzl(page)
					       << IN_LOG;
		all->page = page;
	}
	all->fd = memfd_create("bulkmm-stage", flags | MFD_NOEXEC_SEAL);
	if (all->fd < 0 && errno == EINVAL)
		all->fd = memfd_create("bulkmm-stage", flags);
	if (all->fd < 0)
		return fail(all, errno,
			    page > BMM_THP ? BMM_CAUSE_POOL : BMM_CAUSE_UNKNOWN);
	all->owns_fd = true;
	return 0;
}

/*
 * Where transparent huge pages of the file are those of the mapping; the kernel
 * itself aligns hugetlb pages. If it fails, the kernel may have unmapped what
 * was there, and another thread's mapping may have taken the place.
 */
static void *map_aligned(const struct staging *all, size_t align)
{
	char *room, *start;
	void *mapped;
	int error;

	room = mmap(NULL, all->mapped + align, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return room;
	start = (char *)round_up((uintptr_t)room, align);
	mapped = mmap(start, all->mapped, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED, all->fd, 0);
	error = errno;
	munmap(room, (size_t)(start - room));
	munmap(start + all->mapped, align - (size_t)(start - room));
	errno = error;
	return mapped;
}

/*
 * Not inherited by a fork() meanwhile: a child's mapping would keep the memory
 * from being sealed.
 */
static int map_memory(struct staging *all)
{
	size_t len = all->memory->len;
	bool thp = all->memory->page == BMM_THP && all->page < huge_page();
	void *start;

	if (ftruncate(all->fd, (off_t)len))
		return fail(all, errno, BMM_CAUSE_BACKING);
	if (!len)
		return 0;
	all->mapped = round_up(len, all->page);
	if (thp)
		start = map_aligned(all, huge_page());
	else
		start = mmap(NULL, all->mapped, PROT_READ | PROT_WRITE,
			     MAP_SHARED, all->fd, 0);
	if (start == MAP_FAILED)
		return fail(all, errno,
			    all->page > (size_t)sysconf(_SC_PAGESIZE) ?
				    BMM_CAUSE_POOL :
				    BMM_CAUSE_MEMORY);
	all->start = start;
	madvise(all->start, len, MADV_DONTFORK);
	if (thp)
		madvise(all->start, len, MADV_HUGEPAGE);
	return 0;
}

/* The file that an address belongs to. */
static size_t file_at(const struct staging *all, uintptr_t addr)
{
	size_t low = 0, high = all->count, middle;

	while (high - low > 1) { /* of those at an offset, the last has bytes */
		middle = low + (high - low) / 2;
		if ((uintptr_t)all->start + all->files[middle].offset <= addr)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Bytes of a file, and where they go. */
struct part {
	const struct source *source;
	char *to;
	off_t at;
	size_t len;
};

/* Reads as much as there is; returns 0 at the end of the file, -1: errno. */
static ssize_t read_part(const struct part *part, size_t done, bool cached)
{
	const struct source *source = part->source;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), left = part->len - done;
	ssize_t got;

	if (!cached && source->direct >= 0 && !(done & (page - 1))) {
		got = pread(source->direct, part->to + done,
			    round_up(left, page), part->at + (off_t)done);
		/* what the disk has behind the end of the file */
		memset(part->to + part->len, 0, -part->len & (page - 1));
		if (got >= 0 || errno != EINVAL)
			return got < (ssize_t)left ? got : (ssize_t)left;
	}
	return pread(source->cached, part->to + done, left,
		     part->at + (off_t)done);
}

static bool read_all(const struct part *part, bool cached,
		     struct page_result *result)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), done;
	ssize_t got;

	for (done = 0; done < part->len; done += (size_t)got) {
		do
			got = read_part(part, done, cached);
		while (got < 0 && errno == EINTR);
		if (got > 0)
			continue;
		result->cause = got ? BMM_CAUSE_FILE : BMM_CAUSE_CHANGED;
		result->error = got ? -errno : -ESTALE;
		result->failed = (uintptr_t)part->to + (done & -page);
		result->len = page;
		return false;
	}
	return true;
}

/* Whether the page cache has a chunk, by its first page and its last. */
static bool is_cached(const struct source *source, off_t at, size_t len)
{
	uintptr_t from = (uintptr_t)source->map + (uintptr_t)at;

	return source->seen && pages_cached(from, from + len);
}

/* The next part of a slice, all of which is in the page cache, or none. */
static bool next_part(struct part *part, size_t left)
{
	off_t end = part->source->status.st_size;
	size_t len = CHUNK;
	bool cached;

	if (left > (size_t)(end - part->at)) /* to the end of a page */
		left = (size_t)(end - part->at);
	cached = is_cached(part->source, part->at, left < len ? left : len);
	while (!cached && len < left &&
	       !is_cached(part->source, part->at + (off_t)len,
			  left - len < CHUNK ? left - len : CHUNK))
		len += CHUNK;
	part->len = left < len ? left : len;
	return cached;
}

/**
 * stage_slice() - make a slice resident, and read into it what belongs there
 * @workers: the workers, not locked
 * @slice:   of one file
 * @result:  result: what failed, if anything
 */
void stage_slice(struct workers *workers, const struct slice *slice,
		 struct page_result *result)
{
	const struct staging *all = workers->staging;
	size_t number = file_at(all, slice->from), page;
	struct part part = { .source = &all->sources[number] };
	uintptr_t from = slice->from, to;
	bool cached;

	page = (size_t)sysconf(_SC_PAGESIZE);
	for (; from < slice->to; from = to) {
		part.to = (char *)from;
		part.at = (off_t)(from - (uintptr_t)all->start -
				  all->files[number].offset);
		cached = next_part(&part, slice->to - from);
		to = from + round_up(part.len, page);
		pages_populate(&workers->pages, from, to, &slice->segment->map,
			       result);
		if (result->error || !read_all(&part, cached, result))
			return;
	}
	result->resident = false; /* it was work */
}

/* Where it failed, in terms of files: the memory is gone when this is read. */
static void locate_failure(struct staging *all)
{
	struct bmm_report *report = &all->report;
	uintptr_t at = (uintptr_t)report->failed;

	if (report->failed_len && all->start) {
		all->memory->failed = file_at(all, at);
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

/*
 * Once nothing of it is mapped for writing. A descriptor for reading only is
 * mapped as shared on kernels, too, that take a sealed one for writable (6.6).
 */
static int seal(struct staging *all)
{
	char path[32];
	int reading;

	if (!all->owns_fd)
		return 0;
	if (fcntl(all->fd, F_ADD_SEALS, SEALS))
		return fail(all, errno, BMM_CAUSE_SEAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", all->fd);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading >= 0) { /* else there is no /proc here */
		close(all->fd);
		all->fd = reading;
	}
	return 0;
}

static int stage_all(struct staging *all, const struct bmm_options *options)
{
	int error = open_sources(all);

	if (!error)
		error = all->memory->fd >= 0 ? use_file(all) : make_memfd(all);
	if (error)
		return error;
	all->memory->len = place_files(all);
	if (all->memory->len == SIZE_MAX)
		return fail(all, EFBIG, BMM_CAUSE_ARGUMENT);
	error = map_memory(all);
	if (!error)
		error = read_files(all, options);
	if (!error)
		error = check_sources(all);
	if (all->start)
		munmap(all->start, all->mapped);
	return error ? error : seal(all);
}

/* Nothing is left of it; in a child of a fork() it is the parent's. */
static void undo(struct staging *all)
{
	all->memory->len = 0;
	if (all->owns_fd)
		close(all->fd);
	else if (all->fd >= 0 && all->report.error != -ECHILD &&
		 ftruncate(all->fd, 0))
		all->report.cause = BMM_CAUSE_UNKNOWN; /* not seen to happen */
}

/* Returns 0, or why a program's arguments are refused. */
static int check_stage(const struct bmm_memory *memory, size_t count,
		       const struct bmm_options *options)
{
	struct bmm_options copy;
	int error = options_copy(&copy, options);

	if (error)
		return error;
	if (memory->size != sizeof(*memory) || !count ||
	    count > BMM_RANGES_MAX ||
	    copy.flags & ~(BMM_ON_NODE | BMM_COMPACT) || copy.ready)
		return -EINVAL;
	return 0;
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
 * need, and the threads' stacks. Pages come from the nodes as those of
 * bmm_populate() do.
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
			       .fd = -1 };
	uint64_t start = bmm_host_clock();
	int cancel;

	if (!report_is_valid(report))
		return -EINVAL;
	all.report.size = sizeof(all.report);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	all.report.error = check_stage(memory, count, options);
	if (all.report.error) {
		all.report.cause = BMM_CAUSE_ARGUMENT;
	} else {
		memory->failed = count;
		memory->at = 0;
		if (stage_all(&all, options))
			undo(&all);
		else
			memory->fd = all.fd;
		close_sources(&all);
	}
	all.report.ns = bmm_host_clock() - start;
	report_copy(report, &all.report);
	pthread_setcancelstate(cancel, NULL);
	return all.report.error;
}
