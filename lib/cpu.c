// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which features a process may use on every CPU it may run on.
 *
 * x86-64: CPUID answers for the current CPU. In a machine with several kinds of
 * cores (leaf 7, EDX bit 15), a thread may migrate to one that lacks AVX-512,
 * the only feature here in which kinds of cores have differed (Alder Lake).
 *
 * arm64: the auxiliary vector lists what the kernel has enabled on all CPUs.
 */
#include "cpu.h"

#ifdef __x86_64__
#include "x86/llc.h"

#define BIT(n) (1U << (n))

#define OSXSAVE BIT(27) /* leaf 1, ECX */
#define AVX	BIT(28)
#define HYBRID	BIT(15) /* leaf 7, EDX */

#define XCR0_AVX    0x06U /* SSE and AVX */
#define XCR0_AVX512 0xe6U /* and mask registers and both halves of ZMM */

static bool has_state(const struct bmm_cpuid *raw, uint64_t state)
{
	return raw->c1 & OSXSAVE && raw->c1 & AVX &&
	       (raw->xcr0 & state) == state;
}

/* The features that leaf 7 reports. */
static uint32_t leaf_7(const struct bmm_cpuid *raw)
{
	uint32_t mask = 0;

	if (raw->most < 7)
		return 0;
	if (raw->b7 & BIT(9))
		mask |= BIT(BMM_CPU_ERMS);
	if (raw->b7 & BIT(5) && has_state(raw, XCR0_AVX))
		mask |= BIT(BMM_CPU_AVX2);
	if (raw->b7 & BIT(16) && has_state(raw, XCR0_AVX512) &&
	    !(raw->d7 & HYBRID))
		mask |= BIT(BMM_CPU_AVX512);
	if (raw->b7 & BIT(23))
		mask |= BIT(BMM_CPU_CLFLUSHOPT);
	if (raw->b7 & BIT(24))
		mask |= BIT(BMM_CPU_CLWB);
	if (raw->c7 & BIT(28))
		mask |= BIT(BMM_CPU_MOVDIR64B);
	return mask;
}

/**
 * bmm_cpu_features() - which features of a CPU may be used
 * @raw: its CPUID
 *
 * Return: bit n is set for feature n of enum bmm_cpu.
 */
uint32_t bmm_cpu_features(const struct bmm_cpuid *raw)
{
	uint32_t mask = leaf_7(raw);

	if (raw->most_ext >= 0x80000008 && raw->b_ext8 & BIT(0))
		mask |= BIT(BMM_CPU_CLZERO);
	return mask;
}

static uint64_t xcr0(void)
{
	uint32_t low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* In a virtual machine each CPUID exits to the host. */
static uint32_t ask(void)
{
	struct bmm_cpuid raw = { 0 };
	uint32_t out[4];

	bmm_x86_cpuid(0, 0, out);
	raw.most = out[0];
	bmm_x86_cpuid(0x80000000, 0, out);
	raw.most_ext = out[0];
	bmm_x86_cpuid(1, 0, out);
	raw.c1 = out[2];
	bmm_x86_cpuid(7, 0, out);
	raw.b7 = out[1];
	raw.c7 = out[2];
	raw.d7 = out[3];
	bmm_x86_cpuid(0x80000008, 0, out);
	raw.b_ext8 = out[1];
	if (raw.c1 & OSXSAVE)
		raw.xcr0 = xcr0();
	return bmm_cpu_features(&raw);
}

/* Asks once; threads that race get the same answer. */
size_t bmm_host_llc(void)
{
	static size_t known = SIZE_MAX;
	size_t bytes = bmm_get(&known);

	if (bytes == SIZE_MAX) {
		bytes = bmm_x86_llc();
		bmm_set(&known, bytes);
	}
	return bytes;
}
#else
size_t bmm_host_llc(void)
{
	return 0;
}
#endif

#if defined(__aarch64__)
#include <sys/auxv.h>

#define DCPOP 16 /* bit of AT_HWCAP */
#define MOPS  43 /* of AT_HWCAP2 */

static uint32_t ask(void)
{
	return (uint32_t)(getauxval(AT_HWCAP2) >> MOPS & 1) << BMM_CPU_MOPS |
	       (uint32_t)(getauxval(AT_HWCAP) >> DCPOP & 1) << BMM_CPU_DCPOP;
}
#elif !defined(__x86_64__)
static uint32_t ask(void)
{
	return 0;
}
#endif

#define ASKED (1U << 31)

/* Asks once; threads that race get the same answer. */
bool bmm_host_has(enum bmm_cpu feature)
{
	static uint32_t known;
	uint32_t mask = bmm_get(&known);

	if (!mask) {
		mask = ask() | ASKED;
		bmm_set(&known, mask);
	}
	return mask >> feature & 1;
}
