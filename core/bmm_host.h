/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that the core needs of its host: fixed-width types, an ordinary memory
 * copy and fill, a clock, what the CPU has, and what to do about a broken
 * promise in a debug build. Nothing else in core/ but the public bulkmm.h
 * includes a header from outside core/.
 */
#ifndef BMM_HOST_H
#define BMM_HOST_H

#ifdef __KERNEL__
#include <linux/bug.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/cpufeature.h>
#define UINT32_MAX		    U32_MAX
#define UINT64_MAX		    U64_MAX
#define bmm_memcpy(dst, src, len)   memcpy(dst, src, len)
#define bmm_memset(dst, value, len) memset(dst, value, len)
#define bmm_host_broken(condition)  WARN_ON_ONCE(condition)
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define bmm_memcpy(dst, src, len)   __builtin_memcpy(dst, src, len)
#define bmm_memset(dst, value, len) __builtin_memset(dst, value, len)
#define bmm_host_broken(condition)        \
	do {                              \
		if (condition)            \
			__builtin_trap(); \
	} while (0)
#endif

/* What a caller has promised: believed, but for debug builds. */
#ifdef BMM_DEBUG
#define bmm_assert(promise) bmm_host_broken(!(promise))
#else
#define bmm_assert(promise) ((void)(0 && (promise)))
#endif

/* Words that CPUs share without a lock: whole, and in no order. */
#define bmm_get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define bmm_set(p, value) __atomic_store_n(p, value, __ATOMIC_RELAXED)

/*
 * bmm_host_clock():     ns of a steady clock, which may be read anywhere
 * bmm_host_disturbed(): changes when the caller has been off its CPU, or (a
 *                       process) has taken a page fault: what was timed
 *                       meanwhile says little about stores
 * bmm_host_llc():       bytes of the last-level cache, 0 if not known
 */
#ifdef __KERNEL__
#define bmm_host_clock()     ktime_get_mono_fast_ns()
#define bmm_host_disturbed() (current->nvcsw + current->nivcsw)
#define BMM_DISTURBED_CHEAP  1
#ifdef CONFIG_X86_64
#include "x86/llc.h"
#define bmm_host_llc() bmm_x86_llc()
#else
#define bmm_host_llc() 0UL /* arm64 does not tell modules */
#endif
#else
uint64_t bmm_host_clock(void);
unsigned long bmm_host_disturbed(void); /* a system call */
#define BMM_DISTURBED_CHEAP 0
size_t bmm_host_llc(void);
/* What the user's environment says, or NULL. */
const char *bmm_host_setting(const char *variable);
#endif

/*
 * bmm_host_has() - whether the CPU has a feature that a backend needs
 *
 * The kernel asks its own tests, which know of boot parameters and errata, and
 * hold for every CPU: the boot CPU's capabilities are those that all have. A
 * process is told by lib/cpu.c.
 */
#if defined(__KERNEL__) && defined(__x86_64__)
#define BMM_CPU_ERMS	      X86_FEATURE_ERMS
#define BMM_CPU_CLZERO	      X86_FEATURE_CLZERO
#define BMM_CPU_MOVDIR64B     X86_FEATURE_MOVDIR64B
#define BMM_CPU_PREFETCHW     X86_FEATURE_3DNOWPREFETCH
#define bmm_host_has(feature) boot_cpu_has(feature)
#elif defined(__KERNEL__) && defined(__aarch64__)
#include <linux/version.h>
/* Before 6.13 the kernel cannot continue MOPS of its own on another CPU. */
#define BMM_CPU_MOPS ARM64_HAS_MOPS
#define bmm_host_has(feature)                              \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && \
	 cpus_have_final_cap(feature))
#else
enum bmm_cpu {
	BMM_CPU_ERMS,	   /* REP MOVSB and STOSB are fast */
	BMM_CPU_CLZERO,	   /* AMD */
	BMM_CPU_MOVDIR64B, /* 64 bytes in one store */
	BMM_CPU_PREFETCHW, /* else an invalid instruction on the oldest */
	BMM_CPU_AVX2,	   /* and the system keeps its state */
	BMM_CPU_AVX512,	   /* AVX512F, likewise */
	BMM_CPU_MOPS,	   /* arm64 */
};

bool bmm_host_has(enum bmm_cpu feature);
#endif

#ifdef __aarch64__
/*
 * Bytes of a block of DC ZVA for a value of DCZID_EL0, whose bits 3 to 0 are
 * the logarithm of its 4-byte words; 0 where DZP, bit 4, says that a kernel or
 * a hypervisor prohibits it.
 */
static inline size_t bmm_zva_block(uint64_t dczid)
{
	return dczid & 16 ? 0 : (size_t)4 << (dczid & 15);
}

/* The register can be read at every exception level. */
static inline size_t bmm_host_zva_block(void)
{
	uint64_t dczid;

	__asm__("mrs %0, dczid_el0" : "=r"(dczid));
	return bmm_zva_block(dczid);
}
#endif

/* Records are foreign objects (struct page): words of them may alias. */
typedef uint64_t __attribute__((__may_alias__)) bmm_word;

#endif
