// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libbulkmm-populate.so: for programs that cannot be changed (LD_PRELOAD).
 * Before the kernel works on a large range, bmm_populate() makes it resident
 * with several threads; if the program's own call does more than that, it
 * follows, and finds little to do. So whatever fails, fails as the kernel does.
 *
 * A thread inside bmm_populate() does not come back in: it calls madvise() too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../populate/populate.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

#define VARIABLE "BULKMM_POPULATE_THREADS"

static __thread __attribute__((__tls_model__("initial-exec"))) bool inside;
static unsigned int threads; /* the most; 0: behave as if not loaded */

/*
 * pthread_create() calls calloc(). If that is the program's own allocator, it
 * may be what has called mmap(), holding its lock; no thread can be had without
 * libc, and one thread alone gains nothing. So the kernel does the work then.
 */
static bool libc_allocates(void)
{
	Dl_info libc, own;

	return dladdr((void *)gnu_get_libc_version, &libc) &&
	       dladdr((void *)calloc, &own) && own.dli_fbase == libc.dli_fbase;
}

/* Calls before this one go to the kernel, too. */
__attribute__((constructor)) static void start(void)
{
	const char *value = secure_getenv(VARIABLE);
	unsigned long most = UINT32_MAX;
	char *end = "";

	if (value && *value)
		most = *value == '-' ? ULONG_MAX : strtoul(value, &end, 10);
	if (*end || most > UINT32_MAX)
		dprintf(STDERR_FILENO,
			"libbulkmm-populate: " VARIABLE
			"=%s is not a number of threads; doing nothing\n",
			value);
	else if (libc_allocates())
		threads = (unsigned int)most;
}

/* Returns whether all of it is resident; keeps errno. */
static bool populate(void *addr, size_t len, uint32_t flags)
{
	struct bmm_options options = BMM_OPTIONS_INIT(.flags = flags,
						      .threads = threads);
	int kept = errno;
	bool done;

	inside = true;
	done = !bmm_populate(addr, len, &options, NULL);
	inside = false;
	errno = kept;
	return done;
}

/* Not before Linux 5.14, which cannot populate for reading; keeps errno. */
static bool serves(size_t len)
{
	int kept = errno;
	bool can = len >= SMALL && !inside && threads &&
		   !syscall(SYS_madvise, NULL, 0UL, MADV_POPULATE_READ);

	errno = kept;
	return can;
}

/* Of this thread, those in system calls included. */
static long faults(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* What is there is locked already, or has to be walked once more. */
static bool is_there(uintptr_t page)
{
	unsigned char there;

	return mincore((void *)page, 1, &there) || there & 1;
}

/*
 * Whether the kernel has populated a mapping already. That takes faults, but
 * they may be others': of code that runs for the first time, of a handler. Then
 * its page table tells; mincore() tells of a file what is in the page cache.
 */
static bool is_populated(const char *at, size_t len, long before)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int kept = errno;
	uint64_t entry = 0;

	if (faults() == before)
		return false;
	pages_entry((uintptr_t)at + ((len - 1) & -page), &entry);
	errno = kept;
	return entry & PRESENT;
}

/*
 * MAP_POPULATE writes to private writable mappings, reads other readable ones,
 * and does not report failure. MAP_NONBLOCK makes it do nothing. Locked or
 * unreadable mappings are passed to the kernel. After mlockall(MCL_FUTURE) it
 * populates whatever is mapped, which takes faults: then nothing is left to do.
 */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	bool write = prot & PROT_WRITE && !(flags & MAP_SHARED);
	bool ours = flags & MAP_POPULATE && !(flags & MAP_NONBLOCK) &&
		    !(flags & MAP_LOCKED) && (write || prot & PROT_READ) &&
		    serves(len);
	long before = ours ? faults() : 0;
	int kept;
	void *p;

	/* by system call: this function replaces the library's */
	p = (void *)syscall(SYS_mmap, addr, len, prot,
			    ours ? flags & ~MAP_POPULATE : flags, fd, at);
	if (p == MAP_FAILED || !ours || is_populated(p, len, before) ||
	    populate(p, len, write ? 0 : BMM_READ))
		return p;
	kept = errno; /* let the kernel do what it can */
	syscall(SYS_madvise, p, len,
		write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	errno = kept;
	return p;
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t at)
	__attribute__((__alias__("mmap")));

/* If not all could be done, the kernel is asked again for its own error. */
int madvise(void *addr, size_t len, int advice)
{
	bool write = advice == MADV_POPULATE_WRITE;

	if ((write || advice == MADV_POPULATE_READ) && serves(len) &&
	    populate(addr, len, write ? 0 : BMM_READ))
		return 0;
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/* Whether a piece has huge pages, and had none yet: it took a fault or two. */
static bool made_huge(uintptr_t from, size_t len, int advice)
{
	long taken = -faults();

	if (syscall(SYS_madvise, from, len, advice))
		return false;
	taken += faults();
	return taken == 1 || taken == 2;
}

/*
 * Locks without waiting for pages, so that what may not be locked is not
 * populated either; then populates as locking would: writes to what is private
 * and writable, reads everything else. The kernel's own call, which follows,
 * walks all of it again. That takes as long as a third of making small pages,
 * and next to nothing for huge ones, so they alone are served. Not files, of
 * which one thread reads better, nor several mappings at once.
 */
static void prepare_lock(uintptr_t from, uintptr_t to, size_t page)
{
	uintptr_t piece = (from + (to - from) / 2) & -LEAST;
	size_t len = LEAST;
	struct map map;
	bool write;

	if (!map_at(from, &map) || from < map.start || to > map.end)
		return;
	if (map.page > page) {
		len = map.page;
		piece &= -map.page;
	} else if (!(map.flags & (ANONYMOUS | UNWATCHED))) {
		return;
	}
	if (piece < from || len > to - piece ||
	    syscall(SYS_mlock2, from, to - from, MLOCK_ONFAULT))
		return;
	write = (map.flags & (WRITABLE | SHARED)) == WRITABLE;
	if (made_huge(piece, len,
		      write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		populate((void *)from, to - from, write ? 0 : BMM_READ);
}

int mlock(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & -page;
	int kept = errno, cancel;

	if (len >= SMALL && (uintptr_t)addr + len > from &&
	    !is_there((from + len / 2) & -page) && serves(len)) {
		/* a thread must not end in a call that would not end it */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		prepare_lock(from, ((uintptr_t)addr + len + page - 1) & -page,
			     page);
		pthread_setcancelstate(cancel, NULL);
	}
	errno = kept;
	return (int)syscall(SYS_mlock, addr, len);
}

int mlock2(const void *addr, size_t len, unsigned int flags)
{
	if (!flags)
		return mlock(addr, len);
	return (int)syscall(SYS_mlock2, addr, len, flags);
}
