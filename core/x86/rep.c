// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * REP MOVS and REP STOS: the microcode knows the length in advance. It writes
 * whole lines without reading them first, and some CPUs choose to bypass the
 * cache for lengths of the order of its size. With ERMS the byte forms are the
 * fast ones; without, REP STOSQ is, and for copies plain loops.
 *
 * Stores of one string instruction may become visible in any order, but before
 * the stores that follow it: no drain is needed.
 */
#include "../lines.h"

static bool erms(void)
{
	return bmm_host_has(BMM_CPU_ERMS);
}

static bool no_erms(void)
{
	return !erms();
}

static void move_b(char *p, const char *s, size_t len)
{
	__asm__ volatile("rep movsb"
			 : "+D"(p), "+S"(s), "+c"(len)
			 :
			 : "memory");
}

static void set_q(char *p, size_t len)
{
	len /= 8;
	__asm__ volatile("rep stosq" : "+D"(p), "+c"(len) : "a"(0L) : "memory");
}

#ifdef __KERNEL__
#define copy_skewed(p, s, len) bmm_memcpy(p, s, len)
#else
#define copy_skewed(p, s, len) bmm_plain->copy(p, s, len)
#endif

/*
 * If source and destination differ in their offset within a line, REP MOVS is
 * up to 20 times slower (Zen 3 and later). In a process, memcpy() may be just
 * that from 2 KiB on (glibc 2.36).
 */
static void copy_b(void *dst, const void *src, size_t len)
{
	if (((uintptr_t)dst ^ (uintptr_t)src) % BMM_LINE)
		copy_skewed(dst, src, len);
	else
		copy_extent(dst, src, len, move_b, copy_edge);
}

static void clear_b(void *dst, size_t len)
{
	__asm__ volatile("rep stosb"
			 : "+D"(dst), "+c"(len)
			 : "a"(0)
			 : "memory");
}

/*
 * The lines of the next piece are fetched while one is written. Of what is in
 * no cache, REP STOSB alone writes 12 GB/s, this one 15, and of what is in L2
 * as much as without (Emerald Rapids; pieces of 1 KiB cost there, of 4 KiB gain
 * less).
 */
#define PIECE 2048U

static void clear_t0(void *dst, size_t len)
{
	char *p = dst;
	size_t at;

	for (; len >= 2 * PIECE; len -= PIECE, p += PIECE) {
		for (at = PIECE; at < 2 * PIECE; at += BMM_LINE)
			__asm__ volatile("prefetcht0 (%0)" : : "r"(p + at));
		clear_b(p, PIECE);
	}
	clear_b(p, len);
}

BMM_CLEAR_OF(clear_q, set_q)

const struct bmm_backend bmm_rep[] = {
	{ .name = "rep-b",
	  .level = true,
	  .supported = erms,
	  .copy = BMM_COPY_FN(copy_b),
	  .clear = clear_b },
	{ .name = "rep-b-t0", .supported = erms, .clear = clear_t0 },
	{ .name = "rep-q", .supported = no_erms, .clear = clear_q },
	{ 0 },
};
