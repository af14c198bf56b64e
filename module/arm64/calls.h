/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Direct calls in text, and branches in their place (tail calls). Conditional
 * branches, which reach 1 MiB, are not looked at: compilers do not tail-call by
 * them.
 */
#ifndef BMM_CALLS_H
#define BMM_CALLS_H

#include <linux/types.h>

#define BMM_CALL_STEP 4
#define BMM_CALL_SIZE 4

/* The first word from @at on that is B or BL, or @end; both are aligned. */
static inline const u8 *bmm_call_find(const u8 *at, const u8 *end)
{
	while (at < end && (*(const u32 *)at & 0x7c000000) != 0x14000000)
		at += BMM_CALL_STEP;
	return at;
}

/* Where the call leads. */
static inline unsigned long bmm_call_target(const u8 *code)
{
	s32 words = (s32)(*(const u32 *)code << 6) >> 6;

	return (unsigned long)code + (long)words * 4;
}

static inline unsigned long bmm_call_padding(void)
{
	return 0;
}

#endif
