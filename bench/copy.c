// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "copy": ways to copy memory extent by extent: through a source
 * and a destination that are in no cache; repeatedly between the same two
 * extents ("again") if a cache can hold both; and each with both misaligned.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* In longer extents misalignment costs no more. */
#define MISALIGNED_MAX ((size_t)64 << 20)

static void glibc(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

/* The base is listed twice: the difference between the two is noise. */
static struct variant peers[] = {
	{ .name = "glibc", .method = glibc },
	{ .name = "glibc-again", .method = glibc },
#ifdef __x86_64__
	{ .name = "rep-movsb", .method = rep_movsb },
#endif
	{ .name = "libpmem2", .method = pmem_copy },
	{ .name = "plain", .method = plain_copy },
};

#define PEERS_NR (sizeof(peers) / sizeof(*peers))
#define PMEM	 (PEERS_NR - 2)

/* The last peer, a loop over whole words, and the limits need alignment. */
static void add_scenario(struct variants *list, struct variant *job,
			 const char *suffix)
{
	job->scenario = extent_name("copy", job->extent, suffix);
	variants_add_peers(list, job, peers, PEERS_NR - job->shifted);
	variants_add_ours(list, job, BMM_COPY, "bulkmm-cached");
	variants_add_ours(list, job, BMM_COPY_STREAMING, "bulkmm-streaming");
	if (!job->shifted)
		variants_add_limits(list, job);
}

static void add_again(struct variants *list, const struct variant *job,
		      const char *suffix)
{
	struct variant again = *job;

	if (job->extent > HOT_MAX)
		return;
	again.bytes = job->extent;
	again.times = extent_times(job->extent);
	add_scenario(list, &again, suffix);
	if (!job->shifted)
		return;
	again.shifted = false; /* what misalignment costs */
	again.len = again.extent;
	variants_add(list, &again, "bulkmm-cached-aligned");
}

static void add_misaligned(struct variants *list, const struct variant *job)
{
	struct variant misaligned = *job;

	if (job->extent > MISALIGNED_MAX)
		return;
	misaligned.shifted = true;
	misaligned.len -= SHIFT_CUT;
	add_scenario(list, &misaligned, "-misaligned");
	add_again(list, &misaligned, "-misaligned-again");
}

static void init(struct variants *list, const struct options *options,
		 const struct buffer *buffer)
{
	struct variant job = { .op = BMM_COPY,
			       .times = 1,
			       .source = buffer->source };
	size_t i;

	if (!pmem_init(buffer))
		peers[PMEM].method = NULL;
	for (i = 0; i < options->extents_nr; i++) {
		job.extent = (size_t)options->extents[i];
		job.len = job.extent;
		job.bytes = extent_sample(job.extent, options);
		add_scenario(list, &job, "");
		if (job.extent == options_largest(options))
			variants_add_threads(list, &job, BMM_COPY_STREAMING,
					     "bulkmm-streaming");
		add_again(list, &job, "-again");
		add_misaligned(list, &job);
	}
}

static void describe(const struct options *options)
{
	printf("\"cached\": \"%s\", \"streaming\": \"%s\", \"libpmem2\": %s",
	       options_backend(options, BMM_COPY),
	       options_backend(options, BMM_COPY_STREAMING),
	       peers[PMEM].method ? "true" : "false");
}

const struct subject copy_subject = {
	.name = "copy",
	.per_unit = 1,
	.unit = 1,
	.by_extent = true,
	.sourced = true,
	.ops = 1U << BMM_COPY | 1U << BMM_COPY_STREAMING,
	.init = init,
	.describe = describe,
};
