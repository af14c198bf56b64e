// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "clear": ways to zero memory extent by extent: cold; repeatedly
 * ("again") if a cache can hold it; and with each extent used right after
 * ("then"). Peers are what the kernel does (REP STOSB, over the extent or page
 * by page) and what programs do (memset, a loop, libpmem2).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BASE_PAGE ((size_t)4096)

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
	{ .name = "plain", .method = plain_clear },
	{ .name = "libpmem2", .method = pmem_clear },
};

#define PEERS_NR (sizeof(peers) / sizeof(*peers))
#define PMEM	 (PEERS_NR - 1)

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

static void add_scenario(struct variants *list, struct variant *job,
			 const char *suffix)
{
	void (*add)(struct variants *, const struct variant *, enum bmm_op,
		    const char *) = variants_add_ours;

	/* Longer extents evict every cache: no row per backend. */
	if (job->use != USE_NONE && job->extent > SAMPLE)
		add = variants_add_selected;
	job->scenario = extent_name("clear", job->extent, suffix);
	variants_add_peers(list, job, peers, PEERS_NR);
	add(list, job, BMM_CLEAR, "bulkmm-cached");
	add(list, job, BMM_CLEAR_STREAMING, "bulkmm-streaming");
	if (job->use == USE_NONE)
		variants_add_limits(list, job);
}

static void add_again(struct variants *list, const struct variant *job)
{
	struct variant again = *job;

	if (job->extent > HOT_MAX)
		return;
	again.bytes = job->extent;
	again.times = extent_times(job->extent);
	add_scenario(list, &again, "-again");
	variants_add_peers(list, &again, fills, sizeof(fills) / sizeof(*fills));
}

static void add_extent(struct variants *list, const struct options *options,
		       size_t extent, bool largest)
{
	struct variant job = { .op = BMM_CLEAR,
			       .bytes = extent_sample(extent, options),
			       .times = 1,
			       .extent = extent,
			       .len = extent };
	int use;

	add_scenario(list, &job, "");
	if (largest)
		variants_add_threads(list, &job, BMM_CLEAR_STREAMING,
				     "bulkmm-streaming");
	add_again(list, &job);
	if (extent > options->used_max)
		return;
	for (use = USE_NONE + 1; use < USES; use++) {
		job.use = (enum use)use;
		add_scenario(list, &job, then[use]);
	}
}

static void init(struct variants *list, const struct options *options,
		 const struct buffer *buffer)
{
	size_t i;

	if (!pmem_init(buffer))
		peers[PMEM].method = NULL;
	for (i = 0; i < options->extents_nr; i++)
		add_extent(list, options, (size_t)options->extents[i],
			   options->extents[i] == options_largest(options));
}

static void describe(const struct options *options)
{
	printf("\"cached\": \"%s\", \"streaming\": \"%s\", \"libpmem2\": %s",
	       options_backend(options, BMM_CLEAR),
	       options_backend(options, BMM_CLEAR_STREAMING),
	       peers[PMEM].method ? "true" : "false");
}

const struct subject clear_subject = {
	.name = "clear",
	.per_unit = 1,
	.unit = 1,
	.by_extent = true,
	.ops = 1U << BMM_CLEAR | 1U << BMM_CLEAR_STREAMING,
	.init = init,
	.describe = describe,
};
