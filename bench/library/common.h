/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* common.h - what bmm-bench shares with bmm-native and bmm-populate */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bmm.h"

#define HUGE_SIZE ((size_t)2 << 20)
#define LINE	  ((size_t)64)

/* Bytes on each side of the written range that must not change. */
#define GUARD  ((size_t)4096)
#define POISON 0xff

/* How an extent is used right after it is cleared. */
enum use {
	USE_NONE,
	USE_READ,   /* one word per line, in order */
	USE_WRITE,  /* all bytes, in order */
	USE_RANDOM, /* one word per line is read, in random order */
	USES
};

/* Whether every byte has this value. */
static inline bool bytes_are(const char *at, size_t len, int value)
{
	return !len ||
	       ((unsigned char)*at == value && !memcmp(at, at + 1, len - 1));
}

#ifdef __x86_64__
/* Each is one string instruction. */
static inline void rep_stosb(void *dst, size_t len)
{
	__asm__ volatile("rep stosb"
			 : "+D"(dst), "+c"(len)
			 : "a"(0)
			 : "memory");
}

static inline void rep_movsb(void *dst, const void *src, size_t len)
{
	__asm__ volatile("rep movsb"
			 : "+D"(dst), "+S"(src), "+c"(len)
			 :
			 : "memory");
}
#endif

/* first_use.c; bench/kernel/memmap.c */
const struct bmm_image *pages_image(void);

/* limit.c */
const struct limit *limit_at(enum bmm_op op, size_t i);
const char *limit_name(const struct limit *limit);
void limit_write(const struct limit *limit, enum bmm_op op, void *dst,
		 const void *src, size_t len);

/* use.c */
void use_extent(enum use use, void *base, size_t len);

/* order.c */
uint64_t order_random(uint64_t *state);
void order_shuffle(size_t *order, size_t n, uint64_t *state);

/* buffer.c */
size_t buffer_cache_bytes(void);
uint64_t buffer_huge_bytes(void);

#endif
