// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether memory is prepared ahead of use, or because somebody is about to
 * touch it.
 *
 * A fault that comes out of an exception is a touch, and so is one that a
 * system call takes on the way: a copy to the user of read(), a guest's access
 * inside KVM_RUN. What prepares memory is known in two ways, neither of which
 * costs more than what the task has at hand:
 *
 * - The task pins memory for long (FOLL_LONGTERM): the kernel marks it, for its
 *   allocator. Devices that are given to guests (VFIO, iommufd, vDPA), RDMA,
 *   fixed buffers of io_uring, AF_XDP and udmabuf all pin so, whichever way
 *   they were asked to.
 * - It is inside a system call that populates, of which there are few. Where
 *   one does so only for memory that is locked (brk(), mprotect()), it faults
 *   in nothing else.
 *
 * Whatever is neither counts as a touch, which costs time if it is wrong (2 to
 * 3 times that of the clearing) and not, as the other mistake does, time of the
 * program.
 */
#include <linux/compat.h>
#include <linux/kvm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "populate.h"

/*
 * Numbers of ioctl() are unique to their driver by convention only: another
 * one's of this number would have folios bypass the cache, no more.
 */
static bool populate_is_ioctl(void)
{
	unsigned long args[6];

	syscall_get_arguments(current, current_pt_regs(), args);
	return (unsigned int)args[1] == KVM_PRE_FAULT_MEMORY;
}

static bool populate_is_call(void)
{
	switch (syscall_get_nr(current, current_pt_regs())) {
	case __NR_mmap:
	case __NR_remap_file_pages:
	case __NR_mremap:
	case __NR_madvise:
	case __NR_process_madvise:
	case __NR_fallocate:
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_mlockall:
	case __NR_brk:	    /* locked by mlockall(MCL_FUTURE) */
	case __NR_mprotect: /* locked, and may be written from now on */
	case __NR_pkey_mprotect:
		return true;
	case __NR_ioctl:
		return populate_is_ioctl();
	default:
		return false;
	}
}

/**
 * bmm_populating() - whether the current task asked for memory to be prepared
 *
 * Context: process, with a user's registers or without.
 * Return: true while memory is pinned for long, and inside mmap(), madvise(),
 * mlock() and the like of the kernel's native kind; false for 32-bit programs,
 * whose numbers differ, for kernel threads, and in an exception.
 */
bool bmm_populating(void)
{
	if (current->flags & PF_MEMALLOC_PIN)
		return true;
	if (current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) ||
	    in_compat_syscall())
		return false;
	return populate_is_call();
}
