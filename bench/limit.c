// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The store-bandwidth limit: one nonzero word over the whole range by the
 * CPU's own microcode, which knows the length ahead. Nonzero, because some
 * CPUs write zeroes by another way.
 */
#include "bench.h"

void limit_run(const struct variant *self, void *base, size_t count)
{
	size_t words = count * 8;

	(void)self;
#ifdef __x86_64__
	__asm__ volatile("rep stosq"
			 : "+D"(base), "+c"(words)
			 : "a"(LIMIT_WORD)
			 : "memory");
#else
	for (bmm_word *p = base; words; words--)
		*p++ = LIMIT_WORD;
#endif
}
