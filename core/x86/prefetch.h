/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reading ahead by hand, by so many bytes; nothing where @hint is empty. */
#ifndef BMM_X86_PREFETCH_H
#define BMM_X86_PREFETCH_H

/* @hint: as the instruction ends, a literal: "t0", "t1", "nta", "w" */
#define BMM_PREFETCH(hint, p, ahead) \
	__asm__ volatile("prefetch" hint " %c1(%0)" : : "r"(p), "i"(ahead))

#endif
