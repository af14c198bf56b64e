// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "clear": ways to zero memory extent by extent, each extent used
 * at once or not. The two of the core stand beside what the kernel does (REP
 * STOSB, over the extent or page by page) and what programs do (memset, a loop,
 * libpmem2).
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define BASE_PAGE ((size_t)4096)

static void glibc(void *dst, size_t len)
{
	memset(dst, 0, len);
}

#ifdef __x86_64__
static void rep_stosb(void *dst, size_t len)
{
	__asm__ volatile("rep stosb"
			 : "+D"(dst), "+c"(len)
			 : "a"(0)
			 : "memory");
}

static void rep_stosb_4k(void *dst, size_t len)
{
	char *page = dst, *end = page + len;

	for (; page < end; page += BASE_PAGE)
		rep_stosb(page, BASE_PAGE);
}
#endif

/* The base stands twice: what differs between the two is chance. */
static const struct variant methods[] = {
#ifdef __x86_64__
	{ .name = "rep-stosb", .clear = rep_stosb },
	{ .name = "rep-stosb-again", .clear = rep_stosb },
	{ .name = "rep-stosb-4k", .clear = rep_stosb_4k },
	{ .name = "glibc", .clear = glibc },
#else
	{ .name = "glibc", .clear = glibc },
	{ .name = "glibc-again", .clear = glibc },
#endif
	{ .name = "libpmem2", .clear = pmem_clear },
	{ .name = "plain", .clear = plain_clear },
	{ .name = "bulkmm-cached", .clear = bmm_clear, .chooses = true },
	{ .name = "bulkmm-streaming",
	  .clear = bmm_clear_streaming,
	  .chooses = true },
};

#define METHODS_NR (sizeof(methods) / sizeof(methods[0]))

_Static_assert(EXTENTS_MAX * USES * METHODS_NR <= VARIANTS_MAX,
	       "every method for every extent and use");

static const char *const then[USES] = {
	[USE_NONE] = "",
	[USE_READ] = "-then-read",
	[USE_WRITE] = "-then-write",
	[USE_RANDOM] = "-then-random",
};

static bool have_pmem;

static void run(const struct variant *self, void *base, size_t count)
{
	char *extent = base, *end = extent + count;

	for (; extent < end; extent += self->extent) {
		self->clear(extent, self->extent);
		use_extent(self->use, extent, self->extent);
	}
}

static size_t add_scenario(struct variant *variants, const struct variant *job)
{
	size_t n = 0, i;

	for (i = 0; i < METHODS_NR; i++) {
		if (methods[i].clear == pmem_clear && !have_pmem)
			continue;
		variants[n] = *job;
		variants[n].name = methods[i].name;
		variants[n].clear = methods[i].clear;
		variants[n].chooses = methods[i].chooses;
		n++;
	}
	return n;
}

static int uses_of(const struct options *options, uint64_t extent)
{
	return extent > options->used_max ? USE_NONE + 1 : USES;
}

static size_t init(struct variant *variants, const struct options *options,
		   const struct buffer *buffer)
{
	static char names[EXTENTS_MAX][USES][40];
	struct variant job = { .run = run, .times = 1 };
	size_t n = 0, i;
	int use;

	have_pmem = pmem_init(buffer);
	for (i = 0; i < options->extents_nr; i++)
		for (use = 0; use < uses_of(options, options->extents[i]);
		     use++) {
			char *name = names[i][use];

			job.scenario = name;
			job.extent = (size_t)options->extents[i];
			job.units = extent_sample(job.extent, buffer);
			job.use = (enum use)use;
			extent_name(name, sizeof(names[i][use]), "clear",
				    job.extent, then[use]);
			n += add_scenario(&variants[n], &job);
		}
	return n;
}

static void describe(const struct options *options, size_t count)
{
	(void)count;
	printf("\"cached\": \"%s\", \"streaming\": \"%s\", \"libpmem2\": %s",
	       options_backend(options, BMM_CLEAR),
	       options_backend(options, BMM_CLEAR_STREAMING),
	       have_pmem ? "true" : "false");
}

/* All bytes are zero if the first is and each equals the one before it. */
static bool cleared(const struct variant *variant, const void *base,
		    size_t count)
{
	const char *byte = base;

	(void)variant;
	return !*byte && !memcmp(byte, byte + 1, count - 1);
}

const struct subject clear_subject = {
	.name = "clear",
	.per_unit = 1,
	.unit = 1,
	.by_extent = true,
	.ops = 1U << BMM_CLEAR | 1U << BMM_CLEAR_STREAMING,
	.init = init,
	.describe = describe,
	.right = cleared,
};
