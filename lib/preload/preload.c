// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libbulkmm-populate.so: for programs that cannot be changed (LD_PRELOAD). Ahead
 * of the kernel's own work on a large range bmm_populate() makes it resident by
 * several threads; the program's own call follows where it says more than that,
 * and finds little to do. So whatever fails, fails as the kernel has it fail.
 *
 * A thread that is inside does not come back in: threads that populate call
 * madvise(), too.
 */
#undef _FILE_OFFSET_BITS /* mmap() and mmap64() are two names here */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../populate/populate.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

#define NOT_READ (~0U)

static __thread __attribute__((__tls_model__("initial-exec"))) bool inside;

/* BULKMM_POPULATE_THREADS: at most so many; 0: as if this were not here. */
static unsigned int threads(void)
{
	static unsigned int known = NOT_READ;
	unsigned int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
	const char *said;

	if (now == NOT_READ) {
		said = secure_getenv("BULKMM_POPULATE_THREADS");
		now = said && *said ? (unsigned int)strtoul(said, NULL, 10) :
				      NOT_READ - 1;
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	return now;
}

/* Returns whether all of it is there; keeps errno. */
static bool populate(void *addr, size_t len, uint32_t flags)
{
	struct bmm_options options = { .size = sizeof(options),
				       .flags = flags,
				       .threads = threads() };
	int kept = errno;
	bool done;

	inside = true;
	done = !bmm_populate(addr, len, &options, NULL);
	inside = false;
	errno = kept;
	return done;
}

/* Before Linux 5.14 there is nothing here that all of it could be done with. */
static bool serves(size_t len)
{
	return len >= SMALL && !inside && threads() &&
	       !syscall(SYS_madvise, NULL, 0UL, MADV_POPULATE_READ);
}

/*
 * MAP_POPULATE writes to what is private and writable, reads what else there
 * is, and says nothing when it fails. MAP_NONBLOCK makes it do nothing. Locked
 * memory, and what may not be read, is the kernel's to populate.
 */
static void *map(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	bool write = prot & PROT_WRITE && !(flags & MAP_SHARED);
	bool ours = flags & MAP_POPULATE && !(flags & MAP_NONBLOCK) &&
		    !(flags & MAP_LOCKED) && (write || prot & PROT_READ) &&
		    serves(len);
	int kept;
	void *p;

	/* as a system call: this function stands where the library's would */
	p = (void *)syscall(SYS_mmap, addr, len, prot,
			    ours ? flags & ~MAP_POPULATE : flags, fd, at);
	if (p == MAP_FAILED || !ours || populate(p, len, write ? 0 : BMM_READ))
		return p;
	kept = errno; /* of the kernel, as far as it comes */
	syscall(SYS_madvise, p, len,
		write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	errno = kept;
	return p;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	return map(addr, len, prot, flags, fd, at);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t at)
{
	return map(addr, len, prot, flags, fd, at);
}

/* The kernel is asked again where not all could be done: for its own error. */
int madvise(void *addr, size_t len, int advice)
{
	bool write = advice == MADV_POPULATE_WRITE;

	if ((write || advice == MADV_POPULATE_READ) && serves(len) &&
	    populate(addr, len, write ? 0 : BMM_READ))
		return 0;
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/*
 * Locks without waiting for pages, so that what may not be locked is not populated
 * either; then makes them, as locking would: what is private and writable is
 * written to, all else read. Of several mappings at once the kernel takes care.
 */
static void prepare_lock(uintptr_t from, uintptr_t to)
{
	struct maps maps;
	struct map map;
	bool known = maps_open(&maps) && map_find(&maps, from, true, &map);

	maps_close(&maps);
	if (!known || from < map.start || to > map.end)
		return;
	if (syscall(SYS_mlock2, from, to - from, MLOCK_ONFAULT))
		return;
	populate((void *)from, to - from,
		 map.writable && !map.shared ? 0 : BMM_READ);
}

int mlock(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & -page;

	if (serves(len) && (uintptr_t)addr + len > from)
		prepare_lock(from, ((uintptr_t)addr + len + page - 1) & -page);
	return (int)syscall(SYS_mlock, addr, len);
}

int mlock2(const void *addr, size_t len, unsigned int flags)
{
	if (!flags)
		return mlock(addr, len);
	return (int)syscall(SYS_mlock2, addr, len, flags);
}
