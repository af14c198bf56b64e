// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory that bmm_stage() makes: a memfd or a program's file, mapped while
 * it is read into, then sealed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "stage.h"

#define SEALS	     (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define BUFFERS_ROOM ((BUFFERS + 1) * BUFFER) /* to align them */
#define IN_LOG 26 /* of a huge page's size, in the flags of memfd_create() */

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3; some systems refuse memfds without it */
#define MFD_NOEXEC_SEAL 8U
#endif

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
		return stage_fail(all, EINVAL, BMM_CAUSE_PAGE);
	if (fstatfs(all->memory->fd, &fs) || fstat(all->memory->fd, &status))
		return stage_fail(all, errno, BMM_CAUSE_FD);
	if ((fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC) ||
	    status.st_blocks)
		return stage_fail(all, EINVAL, BMM_CAUSE_FD);
	if (fs.f_type == HUGETLBFS_MAGIC)
		all->page = (size_t)fs.f_bsize;
	all->fd = all->memory->fd; /* from here on stage_undo() empties it */
	return 0;
}

static int make_memfd(struct staging *all)
{
	size_t page = all->memory->page;
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	if (page & (page - 1))
		return stage_fail(all, EINVAL, BMM_CAUSE_PAGE);
	if (page > BMM_THP) {
		flags |= MFD_HUGETLB | (unsigned int)__builtin_ctzl(page)
					       << IN_LOG;
		all->page = page;
	}
	all->fd = memfd_create("bulkmm-stage", flags | MFD_NOEXEC_SEAL);
	if (all->fd < 0 && errno == EINVAL)
		all->fd = memfd_create("bulkmm-stage", flags);
	if (all->fd < 0)
		return stage_fail(all, errno,
				  page > BMM_THP ? BMM_CAUSE_POOL :
						   BMM_CAUSE_UNKNOWN);
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
		return stage_fail(all, errno, BMM_CAUSE_BACKING);
	if (!len)
		return 0;
	all->mapped = round_up(len, all->page);
	if (thp)
		start = map_aligned(all, huge_page());
	else
		start = mmap(NULL, all->mapped, PROT_READ | PROT_WRITE,
			     MAP_SHARED, all->fd, 0);
	if (start == MAP_FAILED)
		return stage_fail(all, errno,
				  all->page > (size_t)sysconf(_SC_PAGESIZE) ?
					  BMM_CAUSE_POOL :
					  BMM_CAUSE_MEMORY);
	all->start = start;
	madvise(all->start, len, MADV_DONTFORK);
	if (thp)
		madvise(all->start, len, MADV_HUGEPAGE);
	return 0;
}

/*
 * Small pages are read into by way of buffers. A disk is quicker with a huge
 * page than with 512 small ones, and what makes them (stage_write.c) neither
 * clears them nor takes a fault for each.
 */
static void map_buffers(struct staging *all)
{
	int flags = fcntl(all->fd, F_GETFL);
	char *room;

	if (all->page > (size_t)sysconf(_SC_PAGESIZE) ||
	    all->memory->page == BMM_THP || flags < 0 || flags & O_APPEND)
		return;
	room = mmap(NULL, BUFFERS_ROOM, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return;
	all->room = room;
	all->buffers = (char *)round_up((uintptr_t)room, BUFFER);
	madvise(all->buffers, BUFFERS * BUFFER, MADV_HUGEPAGE);
	madvise(all->buffers, BUFFERS * BUFFER, MADV_DONTFORK);
}

/* Makes the memory of all files, and maps it. */
int stage_map(struct staging *all)
{
	int error = all->memory->fd >= 0 ? use_file(all) : make_memfd(all);

	if (error)
		return error;
	all->memory->len = place_files(all);
	if (all->memory->len == SIZE_MAX)
		return stage_fail(all, EFBIG, BMM_CAUSE_TOTAL);
	map_buffers(all);
	error = map_memory(all);
	if (!error)
		stage_copies_open(all);
	return error;
}

void stage_unmap(struct staging *all)
{
	stage_copies_close(all);
	if (all->start)
		munmap(all->start, all->mapped);
	if (all->room)
		munmap(all->room, BUFFERS_ROOM);
}

/*
 * Once nothing of it is mapped for writing. A descriptor for reading only is
 * mapped as shared on kernels, too, that take a sealed one for writable (6.6).
 */
int stage_seal(struct staging *all)
{
	char path[32];
	int reading;

	if (!all->owns_fd)
		return 0;
	if (fcntl(all->fd, F_ADD_SEALS, SEALS))
		return stage_fail(all, errno, BMM_CAUSE_SEAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", all->fd);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading >= 0) { /* else there is no /proc here */
		close(all->fd);
		all->fd = reading;
	}
	return 0;
}

/* Nothing is left of it; in a child of a fork() it is the parent's. */
void stage_undo(struct staging *all)
{
	all->memory->len = 0;
	if (all->owns_fd)
		close(all->fd);
	else if (all->fd >= 0 && all->report.error != -ECHILD &&
		 ftruncate(all->fd, 0))
		all->report.cause = BMM_CAUSE_UNKNOWN; /* not seen to happen */
}
