/* SPDX-License-Identifier: GPL-2.0-only */
/* call.h - direct calls, and jumps in their place (tail calls) */
#ifndef BMM_CALL_H
#define BMM_CALL_H

#include <linux/string.h>

#define BMM_CALL_SIZE 5
#define BMM_CALL_STEP 1 /* also between instructions: no matter */

/* Where a call at @at leads, or 0. */
static inline unsigned long bmm_call_target(unsigned long at)
{
	const u8 *code = (const u8 *)at;
	s32 offset;

	if (*code != 0xe8 && *code != 0xe9)
		return 0;
	memcpy(&offset, code + 1, sizeof(offset));
	return at + BMM_CALL_SIZE + offset;
}

#endif
