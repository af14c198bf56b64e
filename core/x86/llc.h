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
 * Leaf 4 (Intel) and 0x8000001d (AMD) have the same format: one cache per
 * subleaf, levels ascending, type 0 after the last. The older leaves give the
 * sum of AMD's L3 caches, or an L2.
 *
 * @describe: one subleaf; returns 0 past the last cache
 */
static inline size_t bmm_x86_cache_bytes(const uint32_t describe[4])
{
	size_t line = (describe[1] & 0xfff) + 1;
	size_t parts = (describe[1] >> 12 & 0x3ff) + 1;
	size_t ways = (describe[1] >> 22) + 1;

	return describe[0] & 31 ?
		       line * parts * ways * ((size_t)describe[2] + 1) :
		       0;
}

/* Bytes; 0 if the CPU does not say, as under some hypervisors. */
static inline size_t bmm_x86_llc(void)
{
	static const uint32_t leaves[] = { 4, 0x8000001d };
	size_t i, bytes, found = 0;
	uint32_t out[4], sub;

	for (i = 0; i < 2 && !found; i++) {
		bmm_x86_cpuid(leaves[i] & 0x80000000, 0, out);
		if (out[0] < leaves[i])
			continue;
		for (sub = 0; sub < 8; sub++) {
			bmm_x86_cpuid(leaves[i], sub, out);
			bytes = bmm_x86_cache_bytes(out);
			if (!bytes)
				break;
			found = bytes;
		}
	}
	return found;
}

#endif
