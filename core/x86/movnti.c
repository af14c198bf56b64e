// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MOVNTI: non-temporal stores from general registers (SSE2, so every x86-64
 * CPU has it). A full line in the write-combining buffer goes to memory
 * without being read first, which is what an ordinary store costs extra.
 */
#include "../backends.h"
#include "drain.h"
#include "lines.h"
#include "record.h"

static bool supported(void)
{
	return true;
}

BMM_X86_STAMP("movnti")

/*
 * The source is read ahead by hand: worth about a fifth from 64 MiB on where
 * it was measured (Zen 3); 1 and 2 KiB ahead do alike there, 4 KiB less. 2 KiB
 * is what a memory of 100 ns delivers in that time at 20 GB/s. Non-temporally,
 * for the source is not read again.
 */
#define READ_AHEAD 2048U

static inline void copy_word(char *p, const char *s)
{
	uint64_t w;

	bmm_memcpy(&w, s, 8);
	BMM_X86_STORE("movnti", (bmm_word *)p, w);
}

/*
 * No loop where @len is constant. Word by word: an array of a line's words
 * would be built on the stack, and read back through store forwarding.
 */
static inline __attribute__((__always_inline__)) void
copy_fixed(char *p, const char *s, size_t len)
{
	size_t i;

#pragma GCC unroll 12
	for (i = 0; i < len; i += 8)
		copy_word(p + i, s + i);
}

static void copy_words(char *p, const char *s, size_t len)
{
	size_t i;

	/* The first 2 KiB too: a third more for cold 8 KiB, 15 % for 4. */
	if (len > READ_AHEAD)
		for (i = 0; i < READ_AHEAD; i += 64)
			__builtin_prefetch(s + i, 0, 0);
	for (; len > READ_AHEAD; len -= 64, p += 64, s += 64) {
		__builtin_prefetch(s + READ_AHEAD, 0, 0);
		copy_fixed(p, s, 64);
	}
	for (; len >= 64; len -= 64, p += 64, s += 64)
		copy_fixed(p, s, 64);
	for (; len; len -= 8, p += 8, s += 8)
		copy_word(p, s);
}

static void copy_half_word(char *p, const char *s)
{
	uint32_t w;

	bmm_memcpy(&w, s, 4);
	__asm__ volatile("movntil %1, %0"
			 : "=m"(*(uint32_t *)p)
			 : "r"(w)
			 : "memory");
}

/* The sizes of descriptors and log entries have no loop. */
static void copy_aligned(char *p, const char *s, size_t len)
{
	switch (len) {
	case 8:
		copy_fixed(p, s, 8);
		break;
	case 16:
		copy_fixed(p, s, 16);
		break;
	case 32:
		copy_fixed(p, s, 32);
		break;
	case 48:
		copy_fixed(p, s, 48);
		break;
	case 64:
		copy_fixed(p, s, 64);
		break;
	case 80:
		copy_fixed(p, s, 80);
		break;
	case 96:
		copy_fixed(p, s, 96);
		break;
	default:
		copy_words(p, s, len);
		break;
	}
}

static void copy(void *dst, const void *src, size_t len)
{
	if (!(((uintptr_t)dst | len) % 8))
		copy_aligned(dst, src, len);
	else if (len == 4 && !((uintptr_t)dst % 4))
		copy_half_word(dst, src);
	else
		bmm_memcpy(dst, src, len);
}

static void clear_lines(char *line, size_t len)
{
	const uint64_t zero = 0;
	size_t i;

	for (; len; len -= BMM_LINE, line += BMM_LINE)
#pragma GCC unroll 8
		for (i = 0; i < BMM_LINE; i += 8)
			BMM_X86_STORE("movnti", (bmm_word *)(line + i), zero);
}

static void clear_streaming(void *dst, size_t len)
{
	bmm_x86_clear(dst, len, clear_lines);
}

const struct bmm_backend bmm_x86_movnti = {
	.name = "movnti",
	.flags = 0,
	.supported = supported,
	.stamp = stamp,
	.copy = copy,
	.clear_streaming = clear_streaming,
	.drain = bmm_x86_drain,
};
