/* SPDX-License-Identifier: GPL-2.0-only */
/* call.h - direct calls, and branches in their place (tail calls) */
#ifndef BMM_CALL_H
#define BMM_CALL_H

#include <linux/bitops.h>
#include <asm/insn.h>

#define BMM_CALL_SIZE AARCH64_INSN_SIZE
#define BMM_CALL_STEP AARCH64_INSN_SIZE

/* Where a call at @at leads, or 0. */
static inline unsigned long bmm_call_target(unsigned long at)
{
	u32 insn = le32_to_cpup((const __le32 *)at);

	if (!aarch64_insn_is_bl(insn) && !aarch64_insn_is_b(insn))
		return 0;
	return at + sign_extend64((u64)insn << 2 & GENMASK(27, 0), 27);
}

#endif
