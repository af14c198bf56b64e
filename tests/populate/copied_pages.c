// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For LD_PRELOAD: counts the bytes that UFFDIO_COPY is to copy, and, if wanted,
 * has it copy half of them, and fail in the next call, or has large reads fail.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long copied;
int fails;
int read_error;

ssize_t pread64(int fd, void *to, size_t len, off_t at)
{
	if (read_error && len >= (size_t)1 << 20) {
		errno = read_error;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, len, at);
}

static int copy_half(int fd, struct uffdio_copy *copy)
{
	static int call;

	if (__atomic_fetch_add(&call, 1, __ATOMIC_RELAXED) & 1) {
		copy->copy = -ENOMEM;
		errno = ENOMEM;
		return -1;
	}
	copy->len = (copy->len / 2 + 4095) & -4096ULL;
	return (int)syscall(SYS_ioctl, fd, UFFDIO_COPY, copy);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct uffdio_copy *copy;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == UFFDIO_COPY) {
		copy = arg;
		__atomic_fetch_add(&copied, (long)copy->len, __ATOMIC_RELAXED);
		if (fails)
			return copy_half(fd, copy);
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
