// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroing for the paths that clear: whether memory is left in the cache.
 *
 * Memory that is prepared ahead of use is told from memory that is about to be
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
#include <linux/cleanup.h>
#include <linux/compat.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/sizes.h>
#include <linux/smp.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "../core/drain.h"
#include "../core/x86/llc.h"
#include "compat/compat.h"
#include "select.h"
#include "clear_common.h"

/* The largest page that mode auto leaves in the cache, in bytes. */
unsigned long bmm_zero_cached_max;

/*
 * This CPU's share of the last-level cache in bytes, or 0 if unknown: under
 * some hypervisors, and to modules on arm64. Size and sharers are those of one
 * CPU, as the caches of a machine may differ.
 */
static unsigned long zero_cache_share(void)
{
#ifdef CONFIG_X86_64
	unsigned int sharing = 0, me, cpu;

	guard(preempt)();
	me = smp_processor_id();
	for_each_online_cpu(cpu)
	{
		if (bmm_llc_id(cpu) == bmm_llc_id(me))
			sharing++;
	}
	return bmm_x86_llc() / max(sharing, 1U);
#else
	return 0;
#endif
}

/** bmm_zero_init() - ask for the cache, before paths may zero and users may tune */
void bmm_zero_init(void)
{
	/* Memory that a fault brings in is always worth its place. */
	bmm_zero_cached_max = max(zero_cache_share(), SZ_2M);
}

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
bool bmm_is_populating(void)
{
	if (current->flags & PF_MEMALLOC_PIN)
		return true;
	if (current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) ||
	    in_compat_syscall())
		return false;
	return populate_is_call();
}

/**
 * bmm_zero_op() - decide whether memory is left in the cache
 * @bytes:      its size
 * @mode:       enum bmm_store_mode
 * @populating: whether it is prepared ahead of use
 *
 * Return: BMM_CLEAR or BMM_CLEAR_STREAMING.
 */
enum bmm_op bmm_zero_op(size_t bytes, int mode, bool populating)
{
	if (mode == BMM_CACHED)
		return BMM_CLEAR;
	if (mode == BMM_STREAMING || populating)
		return BMM_CLEAR_STREAMING;
	return bytes > READ_ONCE(bmm_zero_cached_max) ? BMM_CLEAR_STREAMING :
							BMM_CLEAR;
}

/**
 * bmm_zero() - zero an extent, with the backend that is selected
 * @path: the path to account streamed bytes to; it counts the rest itself
 * @op:   BMM_CLEAR or BMM_CLEAR_STREAMING
 * @at:   where; drained when this returns
 * @len:  bytes, at least 1
 *
 * Context: any, an NMI included.
 */
void bmm_zero(struct bmm_path *path, enum bmm_op op, void *at, size_t len)
{
	if (op == BMM_CLEAR) {
		static_call(bmm_selected_cached)(at, len);
		return;
	}
	static_call(bmm_selected_streaming)(at, len);
	bmm_drain_stores();
	bmm_path_count(path, BMM_ZERO_STREAMED, len);
}
