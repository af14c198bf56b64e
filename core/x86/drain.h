/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What comes after stores that are weakly ordered on x86-64. */
#ifndef BMM_X86_DRAIN_H
#define BMM_X86_DRAIN_H

/*
 * SFENCE orders non-temporal stores, and CLZERO, before everything that
 * follows. A CPU that is left in a context switch needs no extra one: the
 * scheduler's locked instructions drain the write-combining buffers too.
 */
static inline void bmm_x86_drain(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

#endif
