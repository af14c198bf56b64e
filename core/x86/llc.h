/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The size of the last-level cache, from CPUID. */
#ifndef BMM_X86_LLC_H
#define BMM_X86_LLC_H

static inline void bmm_x86_cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
	__asm__("cpuid"
		: "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
		: "a"(leaf), "c"(sub));
}

/*
 * Bytes; 0 if the CPU does not say, as under some hypervisors. Leaf 4 (Intel)
 * and 0x8000001d (AMD) have the same format: one cache per subleaf, levels
 * ascending, type 0 after the last. The older leaves give the sum of AMD's L3
 * caches, or an L2.
 */
static inline size_t bmm_x86_llc(void)
{
	static const uint32_t leaves[] = { 4, 0x8000001d };
	size_t i, line, parts, ways, bytes = 0;
	uint32_t out[4], sub;

	for (i = 0; i < 2 && !bytes; i++) {
		bmm_x86_cpuid(leaves[i] & 0x80000000, 0, out);
		if (out[0] < leaves[i])
			continue;
		for (sub = 0; sub < 8; sub++) {
			bmm_x86_cpuid(leaves[i], sub, out);
			if (!(out[0] & 31))
				break;
			line = (out[1] & 0xfff) + 1;
			parts = (out[1] >> 12 & 0x3ff) + 1;
			ways = (out[1] >> 22) + 1;
			bytes = line * parts * ways * ((size_t)out[2] + 1);
		}
	}
	return bytes;
}

#endif
