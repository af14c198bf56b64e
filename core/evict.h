/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* evict.h - write lines back and drop them from every cache */
#ifndef BMM_EVICT_H
#define BMM_EVICT_H

#include "bmm.h"

#if defined(__x86_64__)
/* Every x86-64 CPU has CLFLUSH; CLFLUSHOPT does not wait for the one before. */
static inline void bmm_evict(const void *at, size_t len)
{
	bool opt = bmm_host_has(BMM_CPU_CLFLUSHOPT);
	const char *p = at;

	for (; len; len -= len < 64 ? len : 64, p += 64)
		if (opt)
			__asm__ volatile("clflushopt (%0)" ::"r"(p) : "memory");
		else
			__asm__ volatile("clflush (%0)" ::"r"(p) : "memory");
	__asm__ volatile("mfence" ::: "memory");
}
#elif defined(__aarch64__)
/* 16 bytes are the smallest line there may be. */
static inline void bmm_evict(const void *at, size_t len)
{
	const char *p = at;

	for (; len; len -= len < 16 ? len : 16, p += 16)
		__asm__ volatile("dc civac, %0" ::"r"(p) : "memory");
	__asm__ volatile("dsb sy" ::: "memory");
}
#else
/* Nothing: what is measured as cold is not. */
static inline void bmm_evict(const void *at, size_t len)
{
	(void)at, (void)len;
}
#endif

#endif
