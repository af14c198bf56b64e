/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loops over whole lines that prefetch something ahead of each: @at, the
 * destination p or the source s. Nothing past the end is prefetched: it is
 * somebody else's.
 */
#ifndef BMM_X86_PREFETCH_H
#define BMM_X86_PREFETCH_H

/* @hint: suffix of the instruction, a literal: "t0", "t1", "nta" */
#define BMM_PREFETCH(hint, p, ahead) \
	__asm__ volatile("prefetch" hint " %c1(%0)" : : "r"(p), "i"(ahead))

#define BMM_CLEAR_AHEAD(name, line, hint, ahead)            \
	static void name(char *p, size_t len)               \
	{                                                   \
		for (; len > (ahead); len -= 64, p += 64) { \
			BMM_PREFETCH(hint, p, ahead);       \
			line(p);                            \
		}                                           \
		for (; len; len -= 64, p += 64)             \
			line(p);                            \
	}

#define BMM_COPY_AHEAD(name, line, hint, at, ahead)                  \
	static void name(char *p, const char *s, size_t len)         \
	{                                                            \
		for (; len > (ahead); len -= 64, p += 64, s += 64) { \
			BMM_PREFETCH(hint, at, ahead);               \
			line(p, s);                                  \
		}                                                    \
		for (; len; len -= 64, p += 64, s += 64)             \
			line(p, s);                                  \
	}

#endif
