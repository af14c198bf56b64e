/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* drain.h - the fence that must follow weakly ordered stores */
#ifndef BMM_DRAIN_H
#define BMM_DRAIN_H

/*
 * x86-64: SFENCE orders non-temporal stores, and CLZERO, before all stores that
 * follow, not loads. A task that migrates needs no extra one: the scheduler's
 * locked instructions drain the write-combining buffers of the CPU it leaves.
 *
 * arm64: stores are not ordered among each other, ordinary ones included: what
 * is published after this fence is seen after what was written before it, by
 * devices that access memory coherently too, as after Linux' dma_wmb().
 */
static inline void bmm_drain_stores(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Waits until every earlier store is done, ordinary ones included. A locked
 * instruction, not MFENCE: with that the pick for cached clearing of 4 KiB was
 * wrong in every process (Zen 5), half as fast as the best.
 */
static inline void bmm_finish_stores(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lock orq $0, (%%rsp)" ::: "memory", "cc");
#elif defined(__aarch64__)
	__asm__ volatile("dsb ish" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
