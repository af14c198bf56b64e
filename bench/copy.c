// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "copy": ways to copy memory extent by extent, as one walks
 * through a source and a destination that are in no cache, and, as far as a
 * cache can hold both, over and over between the same two extents ("again").
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Source and destination of more than that fit no cache that is common. */
#define HOT_MAX ((size_t)16 << 20)
/* Hot copies are fast: more of them fill the time of a sample. */
#define HOT_SAMPLE (2 * SAMPLE)
#define TIMES_MIN  ((size_t)16)

static void glibc(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

#ifdef __x86_64__
static void rep_movsb(void *dst, const void *src, size_t len)
{
	__asm__ volatile("rep movsb"
			 : "+D"(dst), "+S"(src), "+c"(len)
			 :
			 : "memory");
}
#endif

static void streaming(void *dst, const void *src, size_t len)
{
	bmm_copy_streaming(dst, src, len);
	bmm_drain();
}

/* The base stands twice: what differs between the two is chance. */
static const struct variant methods[] = {
	{ .name = "glibc", .copy = glibc },
	{ .name = "glibc-again", .copy = glibc },
	{ .name = "libpmem2", .copy = pmem_copy },
	{ .name = "plain", .copy = plain_copy },
#ifdef __x86_64__
	{ .name = "rep-movsb", .copy = rep_movsb },
#endif
	{ .name = "bulkmm", .copy = streaming, .chooses = true },
};

#define METHODS_NR (sizeof(methods) / sizeof(methods[0]))

_Static_assert(EXTENTS_MAX * 2 * METHODS_NR <= VARIANTS_MAX,
	       "every method for every extent, cold and hot");

static bool have_pmem;

static void run(const struct variant *self, void *base, size_t count)
{
	char *extent, *end = (char *)base + count;
	size_t i;

	for (i = 0; i < self->times; i++)
		for (extent = base; extent < end; extent += self->extent)
			self->copy(extent, extent + self->source, self->extent);
}

static size_t add_scenario(struct variant *variants, const struct variant *job)
{
	size_t n = 0, i;

	for (i = 0; i < METHODS_NR; i++) {
		if (methods[i].copy == pmem_copy && !have_pmem)
			continue;
		variants[n] = *job;
		variants[n].name = methods[i].name;
		variants[n].copy = methods[i].copy;
		variants[n].chooses = methods[i].chooses;
		n++;
	}
	return n;
}

static size_t hot_times(size_t extent)
{
	size_t times = HOT_SAMPLE / extent;

	return times > TIMES_MIN ? times : TIMES_MIN;
}

static size_t init(struct variant *variants, const struct options *options,
		   const struct buffer *buffer)
{
	static char names[EXTENTS_MAX][2][40];
	struct variant job = { .run = run, .source = buffer->source };
	size_t n = 0, i;

	have_pmem = pmem_init(buffer);
	for (i = 0; i < options->extents_nr; i++) {
		job.extent = (size_t)options->extents[i];
		job.scenario = names[i][0];
		job.units = extent_sample(job.extent, buffer);
		job.times = 1;
		extent_name(names[i][0], sizeof(names[i][0]), "copy",
			    job.extent, "");
		n += add_scenario(&variants[n], &job);
		if (job.extent > HOT_MAX)
			continue;
		job.scenario = names[i][1];
		job.units = job.extent;
		job.times = hot_times(job.extent);
		extent_name(names[i][1], sizeof(names[i][1]), "copy",
			    job.extent, "-again");
		n += add_scenario(&variants[n], &job);
	}
	return n;
}

static void describe(const struct options *options, size_t count)
{
	(void)count;
	printf("\"backend\": \"%s\", \"libpmem2\": %s",
	       options_backend(options, BMM_COPY), have_pmem ? "true" : "false");
}

static bool copied(const struct variant *variant, const void *base, size_t count)
{
	return !memcmp(base, (const char *)base + variant->source, count);
}

const struct subject copy_subject = {
	.name = "copy",
	.per_unit = 1,
	.unit = 1,
	.by_extent = true,
	.sourced = true,
	.ops = 1U << BMM_COPY,
	.init = init,
	.describe = describe,
	.right = copied,
};
