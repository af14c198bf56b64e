// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The limit: how fast each kind of stores that the CPU has can write, with as
 * little code as possible. Nothing can beat the fastest of them. They share no
 * code with the backends of the core, so that they share no mistake.
 *
 * They write the same bytes as all other variants, because some CPUs write some
 * bytes faster: Zen 5 streams lines of zeroes at 84 GB/s, lines with an upper
 * half of zeroes at 66, all others at 39. So the limit of struct pages writes
 * exactly the line that a struct page is here.
 *
 * Vector registers are used in assembly only, unknown to the compiler.
 */
#include <string.h>

#include "common.h"

typedef void limit_fn(char *p, const char *s, size_t len);

/**
 * struct limit - a kind of stores
 * @name:  as in the results
 * @has:   whether the CPU has it; NULL: always
 * @weak:  needs a drain
 * @stamp: writes the line at s over and over
 * @clear: zeroes; s is a line of zeroes
 * @copy:  copies from s
 *
 * Each writes whole, aligned lines.
 */
struct limit {
	const char *name;
	bool (*has)(void);
	bool weak;
	limit_fn *stamp, *clear, *copy;
};

/*
 * The loops around put_NAME(p, w, s), which stores at p the words w of one line
 * that were read at s.
 */
#define LOOPS(name)                                                         \
	static __attribute__((__unused__)) void stamp_##name(char *p,       \
							     const char *s, \
							     size_t len)    \
	{                                                                   \
		const bmm_word *f = (const bmm_word *)s;                    \
		const uint64_t w[8] = { f[0], f[1], f[2], f[3],             \
					f[4], f[5], f[6], f[7] };           \
                                                                            \
		for (; len; len -= LINE, p += LINE)                         \
			put_##name(p, w, s);                                \
	}                                                                   \
                                                                            \
	static void copy_##name(char *p, const char *s, size_t len)         \
	{                                                                   \
		for (; len; len -= LINE, p += LINE, s += LINE)              \
			stamp_##name(p, s, LINE);                           \
	}

#define OPERANDS(p, w, s)                                              \
	"r"(p), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), \
		"r"(w[5]), "r"(w[6]), "r"(w[7]), "r"(s)

static void copy_glibc(char *p, const char *s, size_t len)
{
	memcpy(p, s, len);
}

#ifdef __x86_64__
#define HAS(name, feature)                    \
	static bool has_##name(void)          \
	{                                     \
		return bmm_host_has(feature); \
	}

HAS(movdir64b, BMM_CPU_MOVDIR64B)
HAS(clzero, BMM_CPU_CLZERO)
HAS(avx512, BMM_CPU_AVX512)

/* Half as wide: measured only where it is the widest. */
static bool has_avx2(void)
{
	return bmm_host_has(BMM_CPU_AVX2) && !has_avx512();
}

static void copy_rep(char *p, const char *s, size_t len)
{
	rep_movsb(p, s, len);
}

static void clear_rep(char *p, const char *s, size_t len)
{
	rep_stosb(p, len);
}

/* REP STOS cannot write a line: move many lines from the L1 cache instead. */
static void stamp_rep(char *p, const char *s, size_t len)
{
	char block[4096] __attribute__((__aligned__(LINE)));
	size_t now;

	for (now = 0; now < sizeof(block); now += LINE)
		memcpy(block + now, s, LINE);
	for (; len; len -= now, p += now) {
		now = len < sizeof(block) ? len : sizeof(block);
		copy_rep(p, block, now);
	}
}

/* Words from general registers, optionally with a prefetch. */
#define WORDS(name, store, prefetch)                                    \
	static inline void put_##name(char *p, const uint64_t *w,       \
				      const char *s)                    \
	{                                                               \
		__asm__ volatile(                                       \
			prefetch                                        \
			"\n\t" store " %1, (%0)\n\t" store              \
			" %2, 8(%0)\n\t" store " %3, 16(%0)\n\t" store  \
			" %4, 24(%0)\n\t" store " %5, 32(%0)\n\t" store \
			" %6, 40(%0)\n\t" store " %7, 48(%0)\n\t" store \
			" %8, 56(%0)"                                   \
			:                                               \
			: OPERANDS(p, w, s)                             \
			: "memory");                                    \
	}                                                               \
	LOOPS(name)

WORDS(plain, "movq", "")
WORDS(plain_t0, "movq", "prefetcht0 1024(%0)")
WORDS(movnti, "movnti", "")
WORDS(movnti_t0, "movnti", "prefetcht0 1024(%9)")

/* Lines: load one from %1 into registers, and store it to %0. */
#define LINES(name, load, store)                                               \
	static __attribute__((__unused__)) void stamp_##name(char *p,          \
							     const char *s,    \
							     size_t len)       \
	{                                                                      \
		__asm__ volatile(load : : "r"(p), "r"(s) : "memory");          \
		for (; len; len -= LINE, p += LINE)                            \
			__asm__ volatile(store : : "r"(p), "r"(s) : "memory"); \
		__asm__ volatile("vzeroupper");                                \
	}                                                                      \
                                                                               \
	static void copy_##name(char *p, const char *s, size_t len)            \
	{                                                                      \
		for (; len; len -= LINE, p += LINE, s += LINE)                 \
			__asm__ volatile(load "\n\t" store                     \
					 :                                     \
					 : "r"(p), "r"(s)                      \
					 : "memory");                          \
		__asm__ volatile("vzeroupper");                                \
	}

#define LOAD_512 "vmovdqu64 (%1), %%zmm0"
#define AHEAD	 "prefetcht0 1024(%1)\n\t"
#define LOAD_256 "vmovdqu (%1), %%ymm0\n\tvmovdqu 32(%1), %%ymm1"

LINES(avx512, LOAD_512, "vmovdqa64 %%zmm0, (%0)")
LINES(avx512_nt, LOAD_512, "vmovntdq %%zmm0, (%0)")
LINES(avx2, LOAD_256, "vmovdqa %%ymm0, (%0)\n\tvmovdqa %%ymm1, 32(%0)")
LINES(avx2_nt, LOAD_256, "vmovntdq %%ymm0, (%0)\n\tvmovntdq %%ymm1, 32(%0)")
LINES(avx512_nt_t0, AHEAD LOAD_512, "vmovntdq %%zmm0, (%0)")
LINES(avx2_nt_t0, AHEAD LOAD_256,
      "vmovntdq %%ymm0, (%0)\n\tvmovntdq %%ymm1, 32(%0)")

/* Four pages at a time, 256 bytes of each in turn. */
#define PAGES(name)                                                            \
	static void copy_##name##_pages(char *p, const char *s, size_t len)    \
	{                                                                      \
		size_t at, page;                                               \
                                                                               \
		for (; len >= 4 * 4096;                                        \
		     len -= 4 * 4096, p += 4 * 4096, s += 4 * 4096)            \
			for (at = 0; at < 4096; at += 256)                     \
				for (page = at; page < 4 * 4096; page += 4096) \
					copy_##name(p + page, s + page, 256);  \
		copy_##name(p, s, len);                                        \
	}

PAGES(avx512_nt)
PAGES(avx2_nt)

static inline void put_movdir64b(char *p, const uint64_t *w, const char *s)
{
	__asm__ volatile("movdir64b (%1), %0" : : "r"(p), "r"(s) : "memory");
}
LOOPS(movdir64b)

static void clear_clzero(char *p, const char *s, size_t len)
{
	for (; len; len -= LINE, p += LINE)
		__asm__ volatile("clzero" : : "a"(p) : "memory");
}

static const struct limit limits[] = {
	{ "rep", NULL, false, stamp_rep, clear_rep, copy_rep },
	{ "plain", NULL, false, stamp_plain, stamp_plain, copy_plain },
	{ "plain-t0", NULL, false, stamp_plain_t0, stamp_plain_t0,
	  copy_plain_t0 },
	{ "movnti", NULL, true, stamp_movnti, stamp_movnti, copy_movnti },
	{ "movnti-t0", NULL, true, NULL, NULL, copy_movnti_t0 },
	{ "movdir64b", has_movdir64b, true, stamp_movdir64b, stamp_movdir64b,
	  copy_movdir64b },
	{ "avx512", has_avx512, false, stamp_avx512, stamp_avx512, copy_avx512 },
	{ "avx512-nt", has_avx512, true, stamp_avx512_nt, stamp_avx512_nt,
	  copy_avx512_nt },
	{ "avx512-nt-t0", has_avx512, true, NULL, NULL, copy_avx512_nt_t0 },
	{ "avx512-nt-pages", has_avx512, true, NULL, NULL,
	  copy_avx512_nt_pages },
	{ "avx2", has_avx2, false, stamp_avx2, stamp_avx2, copy_avx2 },
	{ "avx2-nt", has_avx2, true, stamp_avx2_nt, stamp_avx2_nt,
	  copy_avx2_nt },
	{ "avx2-nt-t0", has_avx2, true, NULL, NULL, copy_avx2_nt_t0 },
	{ "avx2-nt-pages", has_avx2, true, NULL, NULL, copy_avx2_nt_pages },
	{ "clzero", has_clzero, true, NULL, clear_clzero, NULL },
	{ "glibc", NULL, false, NULL, NULL, copy_glibc },
};
#elif defined(__aarch64__)
#define PAIRS(name, store)                                            \
	static inline void put_##name(char *p, const uint64_t *w,     \
				      const char *s)                  \
	{                                                             \
		__asm__ volatile(store " %1, %2, [%0]\n\t" store      \
				       " %3, %4, [%0, #16]\n\t" store \
				       " %5, %6, [%0, #32]\n\t" store \
				       " %7, %8, [%0, #48]"           \
				 :                                    \
				 : OPERANDS(p, w, s)                  \
				 : "memory");                         \
	}                                                             \
	LOOPS(name)

PAIRS(stp, "stp")
PAIRS(stnp, "stnp")

static bool has_dczva(void)
{
	return bmm_host_zva_block() == LINE;
}

static void clear_dczva(char *p, const char *s, size_t len)
{
	for (; len; len -= LINE, p += LINE)
		__asm__ volatile("dc zva, %0" : : "r"(p) : "memory");
}

static const struct limit limits[] = {
	{ "stp", NULL, true, stamp_stp, stamp_stp, copy_stp },
	{ "stnp", NULL, true, stamp_stnp, stamp_stnp, copy_stnp },
	{ "dczva", has_dczva, true, NULL, clear_dczva, NULL },
	{ "glibc", NULL, true, NULL, NULL, copy_glibc },
};
#else
/* For an unknown CPU. */
static void stamp_plain(char *p, const char *s, size_t len)
{
	for (; len; len -= LINE, p += LINE)
		memcpy(p, s, LINE);
}

static const struct limit limits[] = {
	{ "plain", NULL, false, stamp_plain, stamp_plain, copy_glibc },
};
#endif

#define LIMITS_NR (sizeof(limits) / sizeof(limits[0]))

static limit_fn *function(const struct limit *limit, enum bmm_op op)
{
	switch (op) {
	case BMM_STAMP:
		return limit->stamp;
	case BMM_COPY:
	case BMM_COPY_STREAMING:
		return limit->copy;
	default:
		return limit->clear;
	}
}

/* The i-th kind of stores of an operation that this CPU has, or NULL. */
const struct limit *limit_at(enum bmm_op op, size_t i)
{
	const struct limit *limit;

	for (limit = limits; limit < limits + LIMITS_NR; limit++)
		if (function(limit, op) && (!limit->has || limit->has()) && !i--)
			return limit;
	return NULL;
}

/* Its name in the results. */
const char *limit_name(const struct limit *limit)
{
	return limit->name;
}

/* Writes one extent of whole lines, and drains once, as the core does. */
void limit_write(const struct limit *limit, enum bmm_op op, void *dst,
		 const void *src, size_t len)
{
	static const char zero[LINE] __attribute__((__aligned__(LINE)));

	if (op == BMM_STAMP)
		src = pages_image()->word;
	else if (op == BMM_CLEAR || op == BMM_CLEAR_STREAMING)
		src = zero;
	function(limit, op)(dst, src, len);
	if (limit->weak)
		bmm_drain();
}
