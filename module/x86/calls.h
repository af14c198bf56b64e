/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Direct calls in text. A tail call is a jump: JMP or, by Clang, a conditional
 * one. Short jumps are not looked at, which reach 127 bytes.
 *
 * Bytes between instructions may read as a call, but hardly as one of a given
 * function.
 */
#ifndef BMM_CALLS_H
#define BMM_CALLS_H

#include <linux/string.h>
#include <linux/types.h>
#include <asm/cpufeature.h>

#define BMM_CALL_STEP 1
#define BMM_CALL_SIZE 6 /* bytes: the longest */

#define BMM_CALL      0xe8 /* and 0xe9, a jump, which differs in bit 0 */
#define BMM_TWO_BYTES 0x0f /* then 0x80 to 0x8f: a conditional jump */
#define BMM_EACH      0x0101010101010101ull

/* Has its lowest bit set in the first byte of @word that is zero. */
static inline u64 bmm_find_zero(u64 word)
{
	return (word - BMM_EACH) & ~word & BMM_EACH << 7;
}

/* The first byte from @at on that may begin a call, or @end. */
static inline const u8 *bmm_call_find(const u8 *at, const u8 *end)
{
	u64 word, hits;

	for (; at + sizeof(word) <= end; at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hits = bmm_find_zero((word | BMM_EACH) ^
				     (BMM_CALL | 1) * BMM_EACH) |
		       bmm_find_zero(word ^ BMM_TWO_BYTES * BMM_EACH);
		if (hits)
			return at + __builtin_ctzll(hits) / 8;
	}
	while (at < end && (*at | 1) != (BMM_CALL | 1) && *at != BMM_TWO_BYTES)
		at++;
	return at;
}

/* Where the call leads, or 0: there is none. */
static inline unsigned long bmm_call_target(const u8 *code)
{
	s32 distance;

	if (*code == BMM_TWO_BYTES && (*++code & 0xf0) != 0x80)
		return 0;
	memcpy(&distance, ++code, sizeof(distance));
	return (unsigned long)code + sizeof(distance) + (long)distance;
}

/*
 * How far before a function a call of it may lead: to the padding, where the
 * depth of calls is counted (retbleed=stuff).
 */
static inline unsigned long bmm_call_padding(void)
{
#ifdef CONFIG_FUNCTION_PADDING_BYTES
	if (boot_cpu_has(X86_FEATURE_CALL_DEPTH))
		return CONFIG_FUNCTION_PADDING_BYTES;
#endif
	return 0;
}

#endif
