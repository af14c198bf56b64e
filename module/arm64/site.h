/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The patch site at a function's entry: after the landing pad, if there is one,
 * and MOV X9, LR comes a NOP, which ftrace turns into BL.
 */
#ifndef BMM_SITE_H
#define BMM_SITE_H

#include <linux/ftrace.h>
#include <linux/uaccess.h>
#include <asm/insn.h>

/*
 * Possible offsets from the entry, without and with a landing pad; a kprobe's
 * BRK may hide any word.
 */
static const unsigned long bmm_sites[] __maybe_unused = {
	1 * AARCH64_INSN_SIZE, 2 * AARCH64_INSN_SIZE
};

static inline bool bmm_site_patched(unsigned long site)
{
	__le32 insn = 0;

	return !copy_from_kernel_nofault(&insn, (void *)site, sizeof(insn)) &&
	       aarch64_insn_is_bl(le32_to_cpu(insn));
}

/*
 * The body after the patch site has no landing pad; trampoline.S has a return
 * stub to it. Calls to the original in progress see no change: a function has
 * one patch site for as long as the kernel runs.
 */
static inline unsigned long bmm_site_way_back(unsigned long site,
					      void (*trampoline)(void))
{
	unsigned long **words = (unsigned long **)trampoline;
	unsigned long *body = words[-2];

	WRITE_ONCE(*body, site + AARCH64_INSN_SIZE);
	return (unsigned long)words[-1];
}

#endif
