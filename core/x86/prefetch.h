/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Software prefetch, @ahead bytes ahead. */
#ifndef BMM_X86_PREFETCH_H
#define BMM_X86_PREFETCH_H

/* @hint: suffix of the instruction, a literal: "t0", "t1", "nta", "w" */
#define BMM_PREFETCH(hint, p, ahead) \
	__asm__ volatile("prefetch" hint " %c1(%0)" : : "r"(p), "i"(ahead))

#endif
