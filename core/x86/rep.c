// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * REP MOVS and REP STOS: the CPU's microcode knows the length ahead. It writes
 * whole lines without reading them first, and some CPUs go around the cache
 * for lengths of the order of its size. With ERMS the byte forms are the fast
 * ones at any alignment; without, the quadword forms are, on an aligned
 * destination.
 *
 * Stores of one string instruction may be seen in any order, but not later
 * than the stores that follow it: no drain is needed.
 */
#include "../backends.h"

static bool erms(void)
{
	return bmm_host_has(BMM_CPU_ERMS);
}

static bool always(void)
{
	return true;
}

static void copy_b(void *dst, const void *src, size_t len)
{
	__asm__ volatile("rep movsb"
			 : "+D"(dst), "+S"(src), "+c"(len)
			 :
			 : "memory");
}

static void clear_b(void *dst, size_t len)
{
	__asm__ volatile("rep stosb"
			 : "+D"(dst), "+c"(len)
			 : "a"(0)
			 : "memory");
}

/* Bytes before the first aligned quadword of an extent. */
static size_t head_of(const char *p, size_t len)
{
	size_t head = -(uintptr_t)p % 8;

	return head < len ? head : len;
}

static void copy_q(void *dst, const void *src, size_t len)
{
	size_t head = head_of(dst, len), words = (len - head) / 8;

	bmm_memcpy(dst, src, head);
	dst = (char *)dst + head;
	src = (const char *)src + head;
	__asm__ volatile("rep movsq"
			 : "+D"(dst), "+S"(src), "+c"(words)
			 :
			 : "memory");
	bmm_memcpy(dst, src, (len - head) % 8);
}

static void clear_q(void *dst, size_t len)
{
	size_t head = head_of(dst, len), words = (len - head) / 8;

	bmm_memset(dst, 0, head);
	dst = (char *)dst + head;
	__asm__ volatile("rep stosq"
			 : "+D"(dst), "+c"(words)
			 : "a"(0)
			 : "memory");
	bmm_memset(dst, 0, (len - head) % 8);
}

const struct bmm_backend bmm_x86_rep_b = {
	.name = "rep-b",
	.flags = BMM_CACHED | BMM_LENGTHY,
	.supported = erms,
	.copy = copy_b,
	.clear = clear_b,
	.clear_streaming = clear_b,
	.drain = bmm_no_drain,
};

const struct bmm_backend bmm_x86_rep_q = {
	.name = "rep-q",
	.flags = BMM_CACHED | BMM_LENGTHY,
	.supported = always,
	.copy = copy_q,
	.clear = clear_q,
	.clear_streaming = clear_q,
	.drain = bmm_no_drain,
};
