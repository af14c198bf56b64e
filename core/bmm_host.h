/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Everything the core needs from its host: fixed-width types, memory copy and
 * fill, a clock, CPU features, and what a failed assertion does in a debug
 * build. Apart from the public bulkmm.h, nothing else in core/ includes a
 * header from outside core/.
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
#define bmm_memmove(dst, src, len)  __builtin_memmove(dst, src, len)
#define bmm_memset(dst, value, len) __builtin_memset(dst, value, len)
#define bmm_host_broken(condition)        \
	do {                              \
		if (condition)            \
			__builtin_trap(); \
	} while (0)
#endif

/* What callers promise: checked in debug builds, assumed otherwise. */
#ifdef BMM_DEBUG
#define bmm_assert(promise) bmm_host_broken(!(promise))
#else
#define bmm_assert(promise) ((void)(0 && (promise)))
#endif

/* Words shared between CPUs without a lock: no tearing, no ordering. */
#define bmm_get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define bmm_set(p, value) __atomic_store_n(p, value, __ATOMIC_RELAXED)

/* ns of a monotonic clock, readable in any context */
#ifdef __KERNEL__
#define bmm_host_clock() ktime_get_mono_fast_ns()
#else
uint64_t bmm_host_clock(void);
#endif

/*
 * bmm_host_has() - whether the CPU has a feature that a backend needs
 *
 * The kernel has its own tests, which respect boot parameters and errata and
 * hold for every CPU: the boot CPU's capabilities are those common to all. In a
 * process, lib/cpu.c answers.
 */
#if defined(__KERNEL__) && defined(__x86_64__)
#define BMM_CPU_ERMS	      X86_FEATURE_ERMS
#define BMM_CPU_CLZERO	      X86_FEATURE_CLZERO
#define BMM_CPU_MOVDIR64B     X86_FEATURE_MOVDIR64B
#define BMM_CPU_CLFLUSHOPT    X86_FEATURE_CLFLUSHOPT
#define bmm_host_has(feature) boot_cpu_has(feature)
#elif defined(__KERNEL__) && defined(__aarch64__)
#include <linux/version.h>
/* Before 6.13 the kernel cannot resume its own MOPS on another CPU. */
#define BMM_CPU_MOPS ARM64_HAS_MOPS
#define bmm_host_has(feature)                              \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && \
	 cpus_have_final_cap(feature))
#else
enum bmm_cpu {
	BMM_CPU_ERMS,	   /* REP MOVSB and STOSB are fast */
	BMM_CPU_CLZERO,	   /* AMD */
	BMM_CPU_MOVDIR64B, /* 64 bytes in one store */
	BMM_CPU_AVX2,	   /* and the OS saves its state */
	BMM_CPU_AVX512,	   /* AVX512F, and the OS saves its state */
	BMM_CPU_MOPS,	   /* arm64 */
	BMM_CPU_CLFLUSHOPT,
	BMM_CPU_CLWB,
	BMM_CPU_DCPOP, /* arm64: DC CVAP */
};

bool bmm_host_has(enum bmm_cpu feature);
#endif

#ifdef __aarch64__
/*
 * Bytes of a DC ZVA block, from DCZID_EL0: bits 3 to 0 are log2 of its 4-byte
 * words; 0 if DZP, bit 4, says that the kernel or a hypervisor prohibits it.
 */
static inline size_t bmm_zva_block(uint64_t dczid)
{
	return dczid & 16 ? 0 : (size_t)4 << (dczid & 15);
}

/* Readable at every exception level. */
static inline size_t bmm_host_zva_block(void)
{
	uint64_t dczid;

	__asm__("mrs %0, dczid_el0" : "=r"(dczid));
	return bmm_zva_block(dczid);
}
#endif

/* Records are objects of other types (struct page): their words may alias. */
typedef uint64_t __attribute__((__may_alias__)) bmm_word;

#endif
