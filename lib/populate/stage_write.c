// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From a thread's buffer to memory of small pages, which are new. The kernel
 * makes them of the buffer's bytes, neither cleared nor faulted in, by
 * UFFDIO_COPY, of several threads at once; write() to one file is by one thread
 * at a time. It is used where UFFDIO_COPY is not to be had, or fails: then it
 * says why; and where it gets huge pages, as UFFDIO_COPY never does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "stage.h"

#ifndef UFFD_USER_MODE_ONLY /* Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif

/*
 * Whether write() makes huge pages: the kernel says so of a file on tmpfs, and of
 * a memfd. Sizes between (hugepages-64kB/shmem_enabled) are only page faults'.
 */
static bool writes_huge(const struct staging *all)
{
	struct stat status;

	return fstat(all->fd, &status) || (size_t)status.st_blksize > all->page;
}

/* Not below a filter of system calls: it may kill for one that it does not know. */
static int open_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0))
		return -1;
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Of memory that is mapped, and has buffers; without it write() is used. */
void stage_copies_open(struct staging *all)
{
	struct uffdio_register memory = {
		.range = { .start = (uintptr_t)all->start, .len = all->mapped },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (!all->buffers || !all->start || writes_huge(all))
		return;
	all->copies = open_userfaultfd();
	if (all->copies >= 0 && ioctl(all->copies, UFFDIO_REGISTER, &memory))
		stage_copies_close(all);
}

void stage_copies_close(struct staging *all)
{
	if (all->copies >= 0)
		close(all->copies);
	all->copies = -1;
}

/*
 * Makes pages of a part; returns the bytes that have them. It unmaps them
 * again: all at once at the end, that would be one thread's work.
 */
static size_t copy_pages(const struct staging *all, const struct part *part)
{
	size_t len = round_up(part->len, all->page), done = 0;
	struct uffdio_copy copy;

	while (done < len) {
		copy = (struct uffdio_copy){ .dst = part->addr + done,
					     .src = (uintptr_t)part->to + done,
					     .len = len - done };
		if (ioctl(all->copies, UFFDIO_COPY, &copy) && copy.copy <= 0)
			break;
		done += (size_t)copy.copy;
	}
	if (done)
		madvise((void *)part->addr, done, MADV_DONTNEED);
	return done;
}

/**
 * stage_write() - from a buffer to where it belongs
 * @all:    of memory with small pages
 * @part:   what the buffer has, with zeros up to the end of a page
 * @result: result: what failed, if anything
 */
bool stage_write(const struct staging *all, const struct part *part,
		 struct page_result *result)
{
	off_t to = (off_t)(part->addr - (uintptr_t)all->start);
	size_t done = all->copies >= 0 ? copy_pages(all, part) : 0;
	ssize_t got;

	for (; done < part->len; done += (size_t)got) {
		do
			got = pwrite(all->fd, part->to + done, part->len - done,
				     to + (off_t)done);
		while (got < 0 && errno == EINTR);
		if (got > 0)
			continue;
		result->cause = errno == ENOSPC ? BMM_CAUSE_BACKING :
						  BMM_CAUSE_MEMORY;
		result->error = -errno;
		result->failed = part->addr + (done & -all->page);
		result->len = all->page;
		return false;
	}
	return true;
}
