// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocates folios of 2 MiB in ways that bmmfault does not have: for a device,
 * for a guest, locked, or inside a system call that touches them. The module's
 * tracepoint tells who cleared them, and how. With -t it then touches as many
 * that nobody has asked for.
 */
#include <linux/if_xdp.h>
#include <linux/kvm.h>
#include <linux/udmabuf.h>
#include <linux/vfio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "guest.h"

#define HUGE_BYTES (2UL << 20)
#define BYTES	   (4 * HUGE_BYTES) /* of memory to allocate */
#define LACKING	   3		    /* exit code */

/* Untouched memory that is to get huge pages. */
static char *fresh(void)
{
	return advised(BYTES, HUGE_BYTES, MADV_HUGEPAGE);
}

static void touch_each(char *at)
{
	for (size_t i = 0; i < BYTES; i += HUGE_BYTES)
		*(volatile char *)(at + i) = 1;
}

static void touch(char **word)
{
	touch_each(fresh());
}

/* read(2), a page each time: the kernel stores to it. */
static void read_into(char **word)
{
	int fd = opened("/dev/zero", O_RDONLY);
	char *at = fresh();

	for (size_t i = 0; i < BYTES; i += HUGE_BYTES)
		if (read(fd, at + i, SMALL) != (ssize_t)SMALL)
			err(1, "read");
}

static void lock(char **word)
{
	if (mlock(fresh(), BYTES))
		err(1, "mlock");
}

/* A heap has no advice: the caller enables huge pages for every process. */
static void grow_locked_heap(char **word)
{
	intptr_t unaligned = -(intptr_t)sbrk(0) & (intptr_t)(HUGE_BYTES - 1);

	if (sbrk(unaligned) == (void *)-1)
		err(1, "sbrk");
	if (mlockall(MCL_FUTURE))
		err(1, "mlockall");
	if (sbrk(BYTES) == (void *)-1)
		err(1, "sbrk of locked memory");
	if (munlockall()) /* or what is mapped later is locked as well */
		err(1, "munlockall");
}

/*
 * Memory that nobody may read when it is locked, so that mlock() faults nothing
 * in, not even zeros; then made writable.
 */
static void protect(char **word)
{
	char *at = fresh();

	if (mprotect(at, BYTES, PROT_NONE) || !mlock(at, BYTES) ||
	    errno != ENOMEM || mprotect(at, BYTES, PROT_READ | PROT_WRITE))
		err(1, "mlock and mprotect");
}

/* Untouched memory of a memfd, which the caller enables huge pages for. */
static char *fresh_shared(void)
{
	int fd = memfd_of(BYTES, 0);
	char *at = mmap(fresh(), BYTES, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, fd, 0);

	if (at == MAP_FAILED)
		err(1, "mmap of a memfd");
	return at;
}

static void touch_shared(char **word)
{
	touch_each(fresh_shared());
}

static void populate_shared(char **word)
{
	if (madvise(fresh_shared(), BYTES, MADV_POPULATE_WRITE))
		err(1, "MADV_POPULATE_WRITE");
}

/* Of a pool of hugetlb pages that the caller has left empty. */
static void be_refused(char **word)
{
	int fd = memfd_of(BYTES, MFD_HUGETLB);

	if (!fallocate(fd, 0, 0, BYTES) || errno != ENOSPC)
		err(1, "fallocate() of what the pool lacks");
}

/* A memfd given to devices. */
static void udmabuf(char **word)
{
	struct udmabuf_create memory = { .size = BYTES };
	int fd = memfd_of(BYTES, MFD_ALLOW_SEALING);

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		err(1, "F_SEAL_SHRINK");
	memory.memfd = (unsigned int)fd;
	IOCTL(opened("/dev/udmabuf", O_RDWR), UDMABUF_CREATE, &memory);
}

static void uring(char **word)
{
	pinned_by_io_uring(fresh(), BYTES);
}

static void xdp(char **word)
{
	struct xdp_umem_reg memory = {
		.addr = (uintptr_t)fresh(),
		.len = BYTES,
		.chunk_size = SMALL,
	};
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)))
		err(1, "AF_XDP");
}

/* DEVICE (its name on the PCI bus) GROUP (of the IOMMU): memory is given to it */
static void vfio(char **word)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)fresh(),
		.iova = 0,
		.size = BYTES,
	};
	int container = opened("/dev/vfio/vfio", O_RDWR);
	int fd = opened(word[1], O_RDWR);

	IOCTL(fd, VFIO_GROUP_SET_CONTAINER, &container);
	IOCTL(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU);
	IOCTL(fd, VFIO_GROUP_GET_DEVICE_FD, word[0]);
	IOCTL(container, VFIO_IOMMU_MAP_DMA, &map);
}

#ifdef __x86_64__
/* A guest's CPU, and untouched memory from address 0 on. */
static int kvm_vcpu(char *at)
{
	struct kvm_userspace_memory_region memory = {
		.memory_size = BYTES,
		.userspace_addr = (uintptr_t)at,
	};
	int vm = IOCTL(opened("/dev/kvm", O_RDWR), KVM_CREATE_VM, 0);

	IOCTL(vm, KVM_SET_USER_MEMORY_REGION, &memory);
	return IOCTL(vm, KVM_CREATE_VCPU, 0);
}

/* Whether there is KVM_PRE_FAULT_MEMORY: since 6.11. */
static void kvm_can_prefault(char **word)
{
	if (!IOCTL(opened("/dev/kvm", O_RDWR), KVM_CHECK_EXTENSION,
		   KVM_CAP_PRE_FAULT_MEMORY))
		exit(LACKING);
}

static void kvm_prefault(char **word)
{
	struct kvm_pre_fault_memory memory = { .size = BYTES };
	int vcpu = kvm_vcpu(fresh());

	while (memory.size)
		if (ioctl(vcpu, KVM_PRE_FAULT_MEMORY, &memory) &&
		    errno != EINTR && errno != EAGAIN)
			err(1, "KVM_PRE_FAULT_MEMORY");
}

/*
 * The guest executes zeros, two of which are an add to memory: it first touches
 * the first folio, and is interrupted again and again until it has.
 */
static void kvm_run(char **word)
{
	struct itimerval often = { { 0, 100000 }, { 0, 100000 } };
	struct sigaction action = { .sa_handler = ignored };
	struct kvm_regs regs = { .rflags = 2 };
	struct kvm_sregs sregs;
	char *at = fresh();
	int vcpu = kvm_vcpu(at);

	IOCTL(vcpu, KVM_GET_SREGS, &sregs);
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	IOCTL(vcpu, KVM_SET_SREGS, &sregs);
	IOCTL(vcpu, KVM_SET_REGS, &regs);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 600 && !pfn_of(at); i++)
		if (ioctl(vcpu, KVM_RUN, 0) && errno != EINTR)
			err(1, "KVM_RUN");
}
#endif

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "touch", 0, 0, touch },
		{ "read-call", 0, 0, read_into },
		{ "mlock", 0, 0, lock },
		{ "brk-locked", 0, 0, grow_locked_heap },
		{ "mprotect-locked", 0, 0, protect },
		{ "shared-touch", 0, 0, touch_shared },
		{ "shared-populate", 0, 0, populate_shared },
		{ "udmabuf", 0, 0, udmabuf },
		{ "fallocate-refused", 0, 0, be_refused },
		{ "io-uring", 0, 0, uring },
		{ "af-xdp", 0, 0, xdp },
		{ "vfio DEVICE GROUP", 2, 2, vfio },
#ifdef __x86_64__
		{ "kvm-can-prefault", 0, 0, kvm_can_prefault },
		{ "kvm-prefault", 0, 0, kvm_prefault },
		{ "kvm-run", 0, 0, kvm_run },
#endif
	};

	int touches = argc > 1 && !strcmp(argv[1], "-t");
	int code;

	argv[touches] = argv[0];
	code = RUN_ONE(commands, argc - touches, argv + touches);
	if (!code && touches)
		touch(NULL);
	return code;
}
