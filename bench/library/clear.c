// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "clear": ways to zero memory extent by extent: cold; repeatedly
 * ("again") if a cache can hold it; and with each extent used right after
 * ("then"). Peers are what the kernel does (REP STOSB, over the extent or page
 * by page) and what programs do (memset, a loop, libpmem2).
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BASE_PAGE ((size_t)4096)

/* Longer extents evict every cache: they are cleared but not used. */
#define USED_MAX ((size_t)32 << 20)

static void glibc(void *dst, const void *src, size_t len)
{
	memset(dst, 0, len);
}

#ifdef __x86_64__
static void rep(void *dst, const void *src, size_t len)
{
	rep_stosb(dst, len);
}

static void rep_4k(void *dst, const void *src, size_t len)
{
	char *page = dst, *end = page + len;

	for (; page < end; page += BASE_PAGE)
		rep_stosb(page, BASE_PAGE);
}
#endif

/* The base is listed twice: the difference between the two is noise. */
static struct variant peers[] = {
#ifdef __x86_64__
	{ .name = "rep-stosb", .method = rep },
	{ .name = "rep-stosb-again", .method = rep },
	{ .name = "rep-stosb-4k", .method = rep_4k },
	{ .name = "glibc", .method = glibc },
#else
	{ .name = "glibc", .method = glibc },
	{ .name = "glibc-again", .method = glibc },
#endif
	{ .name = "libpmem2", .method = pmem_clear },
	{ .name = "plain", .method = plain_clear },
};

/* Repeats a pattern of zeroes: others cost as much. @most: bytes of a call */
#define FILL(name, how, size, most)                              \
	static void name(void *dst, const void *src, size_t len) \
	{                                                        \
		static const char pattern[size];                 \
		char *p = dst;                                   \
		size_t n;                                        \
                                                                 \
		for (; len; len -= n, p += n) {                  \
			n = len < (most) ? len : (most);         \
			if (how(p, pattern, size, n))            \
				abort();                         \
		}                                                \
		bmm_drain();                                     \
	}

FILL(fill_64, bmm_fill, 64, SIZE_MAX)
FILL(fill_24, bmm_fill, 24, SIZE_MAX)
FILL(fill_by_60, bmm_fill, 4, 60)
FILL(fill_cached_64, bmm_fill_cached, 64, SIZE_MAX)
FILL(fill_cached_24, bmm_fill_cached, 24, SIZE_MAX)

static const struct variant fills[] = {
	{ .name = "bulkmm-fill-64", .method = fill_64 },
	{ .name = "bulkmm-fill-24", .method = fill_24 },
	{ .name = "bulkmm-fill-by-60", .method = fill_by_60 },
	{ .name = "bulkmm-fill-cached-64", .method = fill_cached_64 },
	{ .name = "bulkmm-fill-cached-24", .method = fill_cached_24 },
};

static const char *const then[USES] = {
	[USE_NONE] = "",
	[USE_READ] = "-then-read",
	[USE_WRITE] = "-then-write",
	[USE_RANDOM] = "-then-random",
};

/* Each extent is used right after. */
static void add_used(struct bench *b, struct variant *job)
{
	int use;

	if (job->extent > USED_MAX)
		return;
	for (use = USE_NONE + 1; use < USES; use++) {
		job->use = (enum use)use;
		extents_scenario(b, job, then[use]);
	}
}

static const struct extents extents = {
	.cached = BMM_CLEAR,
	.streaming = BMM_CLEAR_STREAMING,
	.peers = peers,
	.peers_nr = sizeof(peers) / sizeof(*peers),
	.hot = fills,
	.hot_nr = sizeof(fills) / sizeof(*fills),
	.more = add_used,
};

const struct subject clear_subject = {
	.name = "clear",
	.ops = 1U << BMM_CLEAR | 1U << BMM_CLEAR_STREAMING,
	.extents = &extents,
	.init = extents_init,
	.describe = extents_describe,
};
