// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MOVNTI: non-temporal stores from general registers (SSE2, so every x86-64
 * CPU has it). A full line in the write-combining buffer goes to memory
 * without being read first, which is what an ordinary store costs extra.
 */
#include "../backends.h"
#include "record.h"

static bool supported(void)
{
	return true;
}

BMM_X86_STAMP("movnti")

static void copy_words(char *p, const char *s, size_t len)
{
	uint64_t w[8];

	for (; len >= 64; len -= 64, p += 64, s += 64) {
		bmm_memcpy(w, s, 64);
		__asm__ volatile(BMM_STORE8("movnti", 0)
				 :
				 : [p] "r"(p), BMM_WORDS8(w)
				 : "memory");
	}
	for (; len; len -= 8, p += 8, s += 8) {
		bmm_memcpy(w, s, 8);
		BMM_X86_STORE("movnti", (bmm_word *)p, w[0]);
	}
}

static void copy(void *dst, const void *src, size_t len)
{
	if (!((uintptr_t)dst % 8) && !(len % 8)) {
		copy_words(dst, src, len);
	} else if (len == 4 && !((uintptr_t)dst % 4)) {
		uint32_t w;

		bmm_memcpy(&w, src, 4);
		__asm__ volatile("movntil %1, %0"
				 : "=m"(*(uint32_t *)dst)
				 : "r"(w)
				 : "memory");
	} else {
		bmm_memcpy(dst, src, len);
	}
}

/*
 * SFENCE orders non-temporal stores before everything that follows. A CPU
 * that is left in a context switch needs no extra one: the scheduler's
 * locked instructions drain the write-combining buffers too.
 */
static void drain(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

const struct bmm_backend bmm_x86_movnti = {
	.name = "movnti",
	.flags = 0,
	.supported = supported,
	.stamp = stamp,
	.copy = copy,
	.drain = drain,
};
