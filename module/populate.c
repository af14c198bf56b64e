// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells memory that is prepared ahead of use from memory that is about to be
 * touched.
 *
 * A fault from an exception is a touch, and so is one taken inside most system
 * calls: read() copying to the user, a guest's access inside KVM_RUN. What
 * prepares memory is recognised in two ways, both from what the task has at
 * hand:
 *
 * - The task pins memory long-term (FOLL_LONGTERM): the kernel flags it for its
 *   allocator. Devices assigned to guests (VFIO, iommufd, vDPA), RDMA, fixed
 *   buffers of io_uring, AF_XDP and udmabuf all pin like that, however they
 *   were asked to.
 * - The task is inside a system call that populates; there are few. Those that
 *   populate only locked memory (brk(), mprotect()) fault in nothing else.
 *
 * Anything else counts as a touch. If that is wrong, it costs time (2 to 3
 * times that of the clearing), but not, as the opposite mistake does, time of
 * the program.
 */
#include <linux/compat.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "compat/compat.h"
#include "populate.h"

/*
 * ioctl() numbers are unique to a driver by convention only: another driver's
 * call with this number would make folios bypass the cache, no more.
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

/*
 * Whether the current task asked for memory to be prepared. Not for 32-bit
 * programs, whose numbers of system calls differ, and kernel threads.
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
