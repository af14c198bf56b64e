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

/*
 * @ahead: "", or what fetches four lines 1 KiB ahead of those that are copied,
 * in extents of @least bytes and more; nothing past their end
 */
#define COPY_LINES(name, store, ahead, least)                       \
	static void name(char *p, const char *s, size_t len)        \
	{                                                           \
		char *few = p + len % 256, *end = p + len;          \
		char *far = len < (least) ? few : end - 1024;       \
                                                                    \
		LOOP("", LINE(store) MOVE("add", 64), few);         \
		LOOP("", ahead LINES(store) MOVE("add", 256), far); \
		LOOP("", LINES(store) MOVE("add", 256), end);       \
	}

#define CLEAR_LINES(name, store, ahead, least)                               \
	static void name(char *p, size_t len)                                \
	{                                                                    \
		char *few = p + len % 256, *end = p + len, *s = p;           \
		char *far = len < (least) ? few : end - 1024;                \
                                                                             \
		LOOP(VECTOR_ZERO, store(0, 0) MOVE("add", 64), few);         \
		LOOP(VECTOR_ZERO, ahead ZEROS(store) MOVE("add", 256), far); \
		LOOP(VECTOR_ZERO, ZEROS(store) MOVE("add", 256), end);       \
	}

#define AHEAD(of)                         \
	"prefetcht0 1024(%[" #of "])\n\t" \
	"prefetcht0 1088(%[" #of "])\n\t" \
	"prefetcht0 1152(%[" #of "])\n\t" \
	"prefetcht0 1216(%[" #of "])\n\t"

COPY_LINES(copy_lines, VECTOR_STORE, "", SIZE_MAX)
COPY_LINES(stream_lines, VECTOR_STREAM, "", SIZE_MAX)
CLEAR_LINES(clear_lines, VECTOR_STORE, "", SIZE_MAX)
CLEAR_LINES(stream_zero, VECTOR_STREAM, "", SIZE_MAX)

/*
 * The destination fetched before it is written. Emerald Rapids, GB/s: clearing
 * what is in no cache 15 instead of 9.5, copies 8.7 instead of 6.9, copies of
 * 32 KiB in L2 70 instead of 45; where it is in L1, copies lose a tenth.
 */
COPY_LINES(copy_lines_t0, VECTOR_STORE, AHEAD(p), 2048)
CLEAR_LINES(clear_lines_t0, VECTOR_STORE, AHEAD(p), 2048)

/* The source. Shorter ones lose: 4 KiB at 7.1 instead of 8.4 GB/s (Zen 4). */
COPY_LINES(stream_lines_t0, VECTOR_STREAM, AHEAD(s), 64 << 10)

/*
 * 256 bytes of each of four pages in turn, so that the CPU's prefetchers follow
 * four streams: 12.3 instead of 10.5 GB/s (Emerald Rapids).
 */
static void stream_pages(char *p, const char *s, size_t len)
{
	size_t at, page;

	for (; len >= 4 * 4096; len -= 4 * 4096, p += 4 * 4096, s += 4 * 4096)
		for (at = 0; at < 4096; at += 256)
			for (page = at; page < 4 * 4096; page += 4096)
				stream_lines(p + page, s + page, 256);
	stream_lines(p, s, len);
}

/*
 * A load waits for an earlier store whose address has the same lower 12 bits,
 * on Zen 4: 8 instead of 94 GB/s where the destination is that far ahead. This
 * way that store is further back. What is in no cache loses a third on Zen 3.
 */
static void copy_lines_down(char *p, const char *s, size_t len)
{
	char *few = p + len - len % 256, *end = p;

	if (((uintptr_t)p - (uintptr_t)s) % 4096 - 1 >= 2048) {
		copy_lines(p, s, len);
		return;
	}
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
static inline __attribute__((__always_inline__)) void
copy_by(void *dst, const void *src, size_t len, bmm_copy_lines *lines)
{
	size_t head = extent_head(dst, len, BMM_LINE), last = len - BMM_LINE;
	size_t tail = (len - head) % BMM_LINE;
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
	lines(p + head, s + head, len - head - tail);
}

BMM_COPY_OF(copy, copy_by, copy_lines)
BMM_COPY_OF(copy_t0, copy_by, copy_lines_t0)
BMM_COPY_OF(copy_down, copy_by, copy_lines_down)
BMM_COPY_OF(copy_streaming, bmm_x86_stream_extent, stream_lines)
BMM_COPY_OF(copy_streaming_t0, bmm_x86_stream_extent, stream_lines_t0)
BMM_COPY_OF(copy_streaming_pages, bmm_x86_stream_extent, stream_pages)
BMM_CLEAR_OF(clear, clear_lines)
BMM_CLEAR_OF(clear_t0, clear_lines_t0)
BMM_CLEAR_OF(clear_streaming, stream_zero)

/* What bmm_NAME[] holds: those first that win where memory is cold. */
#define VECTOR_BACKENDS(prefix)                             \
	{                                                   \
		{ .name = prefix "-pages",                  \
		  .supported = supported,                   \
		  .copy_streaming = copy_streaming_pages }, \
		{ .name = prefix "-t0",                     \
		  .supported = supported,                   \
		  .copy = copy_t0,                          \
		  .copy_streaming = copy_streaming_t0,      \
		  .clear = clear_t0 },                      \
		{ .name = prefix,                           \
		  .supported = supported,                   \
		  .copy = copy,                             \
		  .copy_streaming = copy_streaming,         \
		  .clear = clear,                           \
		  .clear_streaming = clear_streaming },     \
		{ .name = prefix "-down",                   \
		  .supported = supported,                   \
		  .copy = copy_down },                      \
		{ 0 },                                      \
	}

#endif
