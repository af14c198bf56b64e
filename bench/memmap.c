// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The subject "memmap": ways to write the struct pages of a device. */
#include <stdio.h>

#include "bench.h"
#include "page.h"

/* The base is listed twice: the difference between the two is noise. */
static const struct variant peers[] = {
	{ .name = "rebuild", .method = rebuild_run },
	{ .name = "rebuild-again", .method = rebuild_run },
	{ .name = "template-copy", .method = template_copy_run },
#ifdef __x86_64__
	{ .name = "template-movnti", .method = template_movnti_run },
#endif
};

static size_t pages(const struct options *options)
{
	return (size_t)(options->size / DEVICE_PAGE);
}

static void init(struct variants *list, const struct options *options,
		 const struct buffer *buffer)
{
	struct variant job = { .scenario = "memmap-stamp",
			       .op = BMM_STAMP,
			       .times = 1 };

	job.bytes = pages(options) * sizeof(struct model_page);
	job.extent = job.bytes;
	job.len = SECTION_PAGES * sizeof(struct model_page);
	if (job.len > job.bytes)
		job.len = job.bytes;
	variants_add_peers(list, &job, peers, sizeof(peers) / sizeof(*peers));
	variants_add_ours(list, &job, BMM_STAMP, "bulkmm");
	variants_add_limits(list, &job);
	variants_add_threads(list, &job, BMM_STAMP, "bulkmm");
}

static void describe(const struct options *options)
{
	printf("\"pages\": %zu, \"backend\": \"%s\"", pages(options),
	       options_backend(options, BMM_STAMP));
}

const struct subject memmap_subject = {
	.name = "memmap",
	.per_unit = DEVICE_PAGE,
	.unit = sizeof(struct model_page),
	.ops = 1U << BMM_STAMP,
	.init = init,
	.describe = describe,
};
