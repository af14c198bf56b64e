/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Copy and clear with vector registers, four lines at a time. The including
 * file has defined, as assembly:
 *
 *	VECTOR_LOAD(n)      loads line n from %[s] into register n, n = 0 to 3
 *	VECTOR_ZERO         zeroes register 0
 *	VECTOR_STORE(r, n)  stores register r to line n from %[p], any alignment
 *	VECTOR_STREAM(r, n) the same, non-temporal, whole lines only
 *
 * The source may have any alignment. A loop is one asm statement: no vector
 * register is alive outside it, where instrumentation may call functions that
 * use them. None is named as clobbered, which -mgeneral-regs-only forbids; in
 * the x86-64 ABI all of them are caller-saved.
 */
#ifndef BMM_X86_USER_VECTOR_H
#define BMM_X86_USER_VECTOR_H

#include "../record.h"

#define LINE(store)  VECTOR_LOAD(0) store(0, 0)
#define LOADS	     VECTOR_LOAD(0) VECTOR_LOAD(1) VECTOR_LOAD(2) VECTOR_LOAD(3)
#define LINES(store) LOADS store(0, 0) store(1, 1) store(2, 2) store(3, 3)
#define ZEROS(store) store(0, 0) store(0, 1) store(0, 2) store(0, 3)

/* To the next ones; a clear has no source, only its register. */
#define MOVE(how, by) how " $" #by ", %[s]\n\t" how " $" #by ", %[p]\n\t"

/*
 * Compared with the end, on a 32-byte boundary: a clear of 4 KiB that counts
 * down takes a fifth longer (a Xeon with AMX).
 */
#define LOOP(before, lines, last)                                          \
	do {                                                               \
		if (p != (last))                                           \
			__asm__ volatile(                                  \
				before                                     \
				"\n\t.p2align 5\n1:\n\t" lines             \
				"cmp %[end], %[p]\n\tjne 1b\n\tvzeroupper" \
				: [p] "+r"(p), [s] "+r"(s)                 \
				: [end] "r"(last)                          \
				: "memory", "cc");                         \
	} while (0)

#define COPY_LINES(name, store)                               \
	static void name(char *p, const char *s, size_t len)  \
	{                                                     \
		char *few = p + len % 256, *end = p + len;    \
                                                              \
		LOOP("", LINE(store) MOVE("add", 64), few);   \
		LOOP("", LINES(store) MOVE("add", 256), end); \
	}

#define CLEAR_LINES(name, store)                                       \
	static void name(char *p, size_t len)                          \
	{                                                              \
		char *few = p + len % 256, *end = p + len, *s = p;     \
                                                                       \
		LOOP(VECTOR_ZERO, store(0, 0) MOVE("add", 64), few);   \
		LOOP(VECTOR_ZERO, ZEROS(store) MOVE("add", 256), end); \
	}

/* Four lines of the source, 1 KiB ahead. */
#define AHEAD                       \
	"prefetcht0 1024(%[s])\n\t" \
	"prefetcht0 1088(%[s])\n\t" \
	"prefetcht0 1152(%[s])\n\t" \
	"prefetcht0 1216(%[s])\n\t"

COPY_LINES(copy_lines, VECTOR_STORE)
COPY_LINES(stream_lines, VECTOR_STREAM)
CLEAR_LINES(clear_lines, VECTOR_STORE)
CLEAR_LINES(stream_zero, VECTOR_STREAM)

/*
 * Not for shorter ones: 4 KiB at 7.1 instead of 8.4 GB/s, 256 KiB at 23 to 25
 * instead of 20 (Zen 4). Nothing past the source's end is prefetched.
 */
static void stream_lines_t0(char *p, const char *s, size_t len)
{
	char *few = p + len % 256, *end = p + len;
	char *far = len < 64 << 10 ? few : end - 1024;

	LOOP("", LINE(VECTOR_STREAM) MOVE("add", 64), few);
	LOOP("", AHEAD LINES(VECTOR_STREAM) MOVE("add", 256), far);
	LOOP("", LINES(VECTOR_STREAM) MOVE("add", 256), end);
}

static void copy_lines_down(char *p, const char *s, size_t len)
{
	char *few = p + len - len % 256, *end = p;

	p += len;
	s += len;
	LOOP("", MOVE("sub", 64) LINE(VECTOR_STORE), few);
	LOOP("", MOVE("sub", 256) LINES(VECTOR_STORE), end);
}

static void copy_line(char *p, const char *s)
{
	__asm__ volatile(LINE(VECTOR_STORE) "vzeroupper"
			 :
			 : [p] "r"(p), [s] "r"(s)
			 : "memory");
}

/* Partial lines are written with what is beside them. */
static void copy(void *dst, const void *src, size_t len)
{
	size_t head = extent_head(dst, len, BMM_LINE), last = len - BMM_LINE;
	size_t tail = (len - head) % BMM_LINE;
	uintptr_t ahead = ((uintptr_t)dst - (uintptr_t)src) % 4096;
	const char *s = src;
	char *p = dst;

	if (len < BMM_LINE) {
		copy_edge(p, s, len);
		return;
	}
	if (head)
		copy_line(p, s);
	if (tail)
		copy_line(p + last, s + last);
	/*
	 * A load waits for an earlier store whose address has the same lower 12
	 * bits: 8 instead of 94 GB/s (Zen 4). In one of the two directions that
	 * store is further back.
	 */
	if (ahead && ahead < 2048)
		copy_lines_down(p + head, s + head, len - head - tail);
	else
		copy_lines(p + head, s + head, len - head - tail);
}

static void copy_streaming(void *dst, const void *src, size_t len)
{
	bmm_x86_stream_extent(dst, src, len, stream_lines);
}

static void copy_streaming_t0(void *dst, const void *src, size_t len)
{
	bmm_x86_stream_extent(dst, src, len, stream_lines_t0);
}

static void clear(void *dst, size_t len)
{
	clear_extent(dst, len, BMM_LINE, clear_lines);
}

static void clear_streaming(void *dst, size_t len)
{
	clear_extent(dst, len, BMM_LINE, stream_zero);
}

#endif
