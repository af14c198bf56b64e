// SPDX-License-Identifier: GPL-2.0-only
/*
 * bmmpin WAY... - allocate folios of 2 MiB in ways that bmmfault does not have:
 * for a device, for a guest, locked, or inside a system call that touches them.
 * The module's tracepoint tells who cleared them, and how.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bmmpin.h"

/* Aligned, untouched memory that is to get huge pages. */
char *fresh(int prot)
{
	char *at = mmap(NULL, BYTES + HUGE_BYTES, prot,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	at += -(uintptr_t)at % HUGE_BYTES;
	if (madvise(at, BYTES, MADV_HUGEPAGE))
		err(1, "MADV_HUGEPAGE");
	return at;
}

static void touch(void)
{
	char *at = fresh(PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < BYTES; i += HUGE_BYTES)
		*(volatile char *)(at + i) = 1;
}

/* read(2), a page each time: the kernel stores to it. */
static void read_into(void)
{
	char *at = fresh(PROT_READ | PROT_WRITE);
	int fd = open("/dev/zero", O_RDONLY);

	for (size_t i = 0; i < BYTES; i += HUGE_BYTES)
		if (read(fd, at + i, 4096) != 4096)
			err(1, "read");
	close(fd);
}

static void lock(void)
{
	if (mlock(fresh(PROT_READ | PROT_WRITE), BYTES))
		err(1, "mlock");
}

/* A heap has no advice: the caller enables huge pages for every process. */
static void grow_locked_heap(void)
{
	if (mlockall(MCL_FUTURE))
		err(1, "mlockall");
	if (sbrk(BYTES + HUGE_BYTES) == (void *)-1)
		err(1, "sbrk");
}

static void uring(void)
{
	struct iovec memory = {
		.iov_base = fresh(PROT_READ | PROT_WRITE),
		.iov_len = BYTES,
	};
	struct io_uring_params params = {};
	long ring = syscall(SYS_io_uring_setup, 1, &params);

	if (ring < 0)
		err(1, "io_uring_setup");
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
		    &memory, 1))
		err(1, "io_uring_register");
}

static void xdp(void)
{
	struct xdp_umem_reg memory = {
		.addr = (uintptr_t)fresh(PROT_READ | PROT_WRITE),
		.len = BYTES,
		.chunk_size = 4096,
	};
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	if (fd < 0)
		err(1, "AF_XDP");
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)))
		err(1, "XDP_UMEM_REG");
}

/* Memory locked while read-only, then made writable. */
static void protect(void)
{
	char *at = fresh(PROT_READ);

	if (mlock(at, BYTES))
		err(1, "mlock");
	if (mprotect(at, BYTES, PROT_READ | PROT_WRITE))
		err(1, "mprotect");
}

static const struct {
	const char *name;
	void (*bring)(void);
} ways[] = {
	{ "touch", touch },
	{ "read-call", read_into },
	{ "mlock", lock },
	{ "brk-locked", grow_locked_heap },
	{ "mprotect-locked", protect },
	{ "io-uring", uring },
	{ "af-xdp", xdp },
	{ "kvm-prefault", kvm_prefault },
	{ "kvm-run", kvm_run },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "vfio")) {
		vfio(argv[2], argv[3]);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < WAYS; i++)
		if (!strcmp(argv[1], ways[i].name)) {
			ways[i].bring();
			return 0;
		}
	fprintf(stderr, "usage: bmmpin vfio DEVICE GROUP\n       bmmpin WAY:");
	for (size_t i = 0; i < WAYS; i++)
		fprintf(stderr, " %s", ways[i].name);
	fprintf(stderr, "\n");
	return 2;
}
