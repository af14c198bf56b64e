// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether memory is prepared ahead of use, or because somebody is about to
 * touch it.
 *
 * A fault that comes out of an exception is a touch, and so is one that a
 * system call takes on the way: a copy to the user of read(), a guest's access
 * inside KVM_RUN. What prepares memory is a short list of system calls;
 * whatever is not on it counts as a touch, which costs time if it is wrong
 * (2 to 3 times that of the clearing) and not, as the other mistake does, time
 * of the program.
 */
#include <linux/compat.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "populate.h"

/**
 * bmm_populating() - whether the current task asked for memory to be prepared
 *
 * Context: process, with a user's registers or without.
 * Return: true inside mmap(), madvise(), mlock() and the like of the kernel's
 * native kind; false for 32-bit programs, whose numbers differ, for kernel
 * threads, and in an exception.
 */
bool bmm_populating(void)
{
	if (current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) ||
	    in_compat_syscall())
		return false;
	switch (syscall_get_nr(current, current_pt_regs())) {
	case __NR_mmap:
	case __NR_madvise:
	case __NR_process_madvise:
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_mlockall:
	case __NR_mremap:
	case __NR_fallocate:
		return true;
	default:
		return false;
	}
}
