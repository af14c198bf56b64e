// SPDX-License-Identifier: GPL-2.0-only
/* Guest memory: given to a device, faulted in ahead, touched by the guest. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/vfio.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "bmmpin.h"

static int opened(const char *file)
{
	int fd = open(file, O_RDWR);

	if (fd < 0)
		err(1, "%s", file);
	return fd;
}

/* @device: its name on the PCI bus; @group: of the IOMMU */
void vfio(const char *device, const char *group)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)fresh(PROT_READ | PROT_WRITE),
		.iova = 0,
		.size = BYTES,
	};
	int container = opened("/dev/vfio/vfio"), fd = opened(group);

	if (ioctl(fd, VFIO_GROUP_SET_CONTAINER, &container))
		err(1, "VFIO_GROUP_SET_CONTAINER");
	if (ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		err(1, "VFIO_SET_IOMMU");
	if (ioctl(fd, VFIO_GROUP_GET_DEVICE_FD, device) < 0)
		err(1, "VFIO_GROUP_GET_DEVICE_FD");
	if (ioctl(container, VFIO_IOMMU_MAP_DMA, &map))
		err(1, "VFIO_IOMMU_MAP_DMA");
}

#ifdef __x86_64__
/* A guest's CPU, and untouched memory from address 0 on. */
static int kvm_vcpu(void)
{
	struct kvm_userspace_memory_region memory = {
		.memory_size = BYTES,
		.userspace_addr = (uintptr_t)fresh(PROT_READ | PROT_WRITE),
	};
	int vm = ioctl(opened("/dev/kvm"), KVM_CREATE_VM, 0), vcpu;

	if (vm < 0)
		err(1, "KVM_CREATE_VM");
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &memory))
		err(1, "KVM_SET_USER_MEMORY_REGION");
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (vcpu < 0)
		err(1, "KVM_CREATE_VCPU");
	return vcpu;
}

void kvm_prefault(void)
{
	struct kvm_pre_fault_memory memory = { .size = BYTES };
	int vcpu = kvm_vcpu();

	while (memory.size)
		if (ioctl(vcpu, KVM_PRE_FAULT_MEMORY, &memory) &&
		    errno != EINTR && errno != EAGAIN)
			err(1, "KVM_PRE_FAULT_MEMORY");
}

static void ignore(int signal)
{
	(void)signal;
}

/*
 * The guest executes zeros, two of which are an add to memory: it first touches
 * the first folio, and runs until a signal comes.
 */
void kvm_run(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct sigaction action = { .sa_handler = ignore };
	struct kvm_regs regs = { .rflags = 2 };
	struct kvm_sregs sregs;
	int vcpu = kvm_vcpu();

	if (ioctl(vcpu, KVM_GET_SREGS, &sregs))
		err(1, "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) ||
	    ioctl(vcpu, KVM_SET_REGS, &regs))
		err(1, "KVM_SET_REGS");
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	if (ioctl(vcpu, KVM_RUN, 0) && errno != EINTR)
		err(1, "KVM_RUN");
}
#else
void kvm_prefault(void)
{
	errno = ENOSYS;
	err(1, "KVM_PRE_FAULT_MEMORY");
}

void kvm_run(void)
{
	errno = ENOSYS;
	err(1, "KVM_RUN");
}
#endif
