/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* cpu.h - what CPUID reports, and which features may be used */
#ifndef BMM_CPU_H
#define BMM_CPU_H

#include "bmm_host.h"

/**
 * struct bmm_cpuid - raw CPUID of an x86-64 CPU
 * @most:     highest leaf
 * @most_ext: highest extended leaf, from 0x80000000 on
 * @c1:       leaf 1, ECX
 * @b7:       leaf 7 subleaf 0, EBX; @c7 and @d7: ECX and EDX
 * @b_ext8:   leaf 0x80000008, EBX
 * @xcr0:     XCR0 if OSXSAVE is set: the register state that the OS saves
 *
 * Leaves above the highest may hold anything.
 */
struct bmm_cpuid {
	uint32_t most, most_ext;
	uint32_t c1, b7, c7, d7, b_ext8;
	uint64_t xcr0;
};

/* Bytes of the last-level cache, 0 if unknown. */
size_t bmm_host_llc(void);

uint32_t bmm_cpu_features(const struct bmm_cpuid *raw);

#endif
