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
#include <linux/numa.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>
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

/*
 * bmm_host_clock():    ns of a steady clock, which may be read anywhere
 * bmm_host_node():     memory node of an operation's destination; negative
 *                      if not known, or not worth asking for so few bytes
 * bmm_host_switches(): changes when the caller has been off its CPU
 * bmm_host_turn():     counts the calls of this thread
 */
#ifdef __KERNEL__
#define bmm_host_clock()	ktime_get_mono_fast_ns()
#define bmm_host_node(dst, len) NUMA_NO_NODE
#define bmm_host_switches()	(current->nvcsw + current->nivcsw)
#define bmm_host_turn()		0U
#else
uint64_t bmm_host_clock(void);
int bmm_host_node(const void *dst, size_t len);
#define bmm_host_switches() 0UL
/* Initial-exec: a call for the address would cost as much as is saved. */
extern __thread unsigned int bmm_host_turns
	__attribute__((__tls_model__("initial-exec")));
#define bmm_host_turn()	    (bmm_host_turns++)
#endif

/*
 * bmm_host_has() - whether the CPU has a feature a backend needs. The kernel
 * asks its own tests, which know of boot parameters and errata too. CPUID
 * leaves a virtual machine for its host and back: ask rarely.
 *
 * On arm64 the ID registers are the kernel's, and say what a CPU has, not what
 * the kernel has enabled; a process is told that in its auxiliary vector, of
 * all CPUs together. MOPS enabled for processes is not yet MOPS for the kernel:
 * before Linux 6.13 it has no do_el1_mops(), and dies if an instruction is
 * continued on a CPU that keeps its state in another form.
 */
#if defined(__KERNEL__) && defined(__x86_64__)
#include <asm/cpufeature.h>
#define BMM_CPU_ERMS	      X86_FEATURE_ERMS
#define BMM_CPU_CLZERO	      X86_FEATURE_CLZERO
#define bmm_host_has(feature) boot_cpu_has(feature)
#elif defined(__x86_64__)
enum bmm_cpu {
	BMM_CPU_ERMS,	/* REP MOVSB and STOSB are fast: leaf 7, EBX bit 9 */
	BMM_CPU_CLZERO, /* leaf 8000_0008, EBX bit 0 */
};

/* EBX of @leaf, subleaf 0; 0 where the CPU does not know the leaf. */
static inline uint32_t bmm_cpuid_ebx(uint32_t leaf)
{
	uint32_t a = leaf & 0x80000000, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (a < leaf)
		return 0;
	a = leaf;
	c = 0;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return b;
}

static inline bool bmm_host_has(enum bmm_cpu feature)
{
	if (feature == BMM_CPU_ERMS)
		return bmm_cpuid_ebx(7) >> 9 & 1;
	return bmm_cpuid_ebx(0x80000008) & 1;
}
#elif defined(__KERNEL__) && defined(__aarch64__)
#include <asm/cpufeature.h>
#include <linux/version.h>
#define BMM_CPU_MOPS ARM64_HAS_MOPS
#define bmm_host_has(feature)                              \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && \
	 cpus_have_final_cap(feature))
#elif defined(__aarch64__)
#include <sys/auxv.h>
enum bmm_cpu {
	BMM_CPU_MOPS = 43, /* the bit of AT_HWCAP2 */
};

static inline bool bmm_host_has(enum bmm_cpu feature)
{
	return getauxval(AT_HWCAP2) >> feature & 1;
}
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
