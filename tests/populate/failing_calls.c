// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For LD_PRELOAD: every other large read is interrupted, and mapping a file at
 * a fixed address fails as kernels let it: what was there is gone, and another
 * thread's mapping takes the place.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20)

char *taken;
int interrupted;

ssize_t pread64(int fd, void *to, size_t len, off_t at)
{
	if (len >= LARGE && !(interrupted++ & 1)) {
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, len, at);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	if (flags & MAP_FIXED && flags & MAP_SHARED) {
		taken = (char *)syscall(SYS_mmap, addr, len, prot,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
					-1, 0);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, at);
}
