/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The patch site at a function's entry: a five-byte NOP after the landing pad,
 * which ftrace turns into a call.
 */
#ifndef BMM_SITE_H
#define BMM_SITE_H

#include <linux/ftrace.h>
#include <linux/uaccess.h>
#include <asm/ibt.h>
#include <asm/text-patching.h>

/*
 * Possible offsets from the entry: after a landing pad, or without one. In this
 * order: the last byte of the second candidate lies in the first as well.
 */
static const unsigned long bmm_sites[] __maybe_unused = { ENDBR_INSN_SIZE, 0 };

/* An INT3: ftrace turns one call into another, for a tracer that comes or goes. */
static inline bool bmm_site_patched(unsigned long site)
{
	u8 opcode = 0;

	return !copy_from_kernel_nofault(&opcode, (void *)site, 1) &&
	       (opcode == CALL_INSN_OPCODE || opcode == INT3_INSN_OPCODE);
}

/* The target of static calls to the original: the next instruction. */
static inline unsigned long bmm_site_way_back(unsigned long site,
					      void (*trampoline)(void))
{
	return site + MCOUNT_INSN_SIZE;
}

#endif
