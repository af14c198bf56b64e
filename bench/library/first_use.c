// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "first-use": what calibration costs. The same work, of --size
 * bytes, done first in a program, whose first call calibrates ("first"), and
 * after that ("settled").
 */
#include <stdio.h>

#include "bench.h"

/* A record as long as a struct page, whose words differ. */
const struct bmm_image *pages_image(void)
{
	static const uint64_t record[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static struct bmm_image image;

	if (!image.size)
		bmm_image_init(&image, record, NULL, sizeof(record));
	return &image;
}

static const char *const names[BMM_OPS] = {
	[BMM_STAMP] = "first-use-stamp",
	[BMM_COPY] = "first-use-copy",
	[BMM_COPY_STREAMING] = "first-use-copy-streaming",
	[BMM_CLEAR] = "first-use-clear",
	[BMM_CLEAR_STREAMING] = "first-use-clear-streaming",
};

static void init(struct bench *b)
{
	const struct options *options = &b->options;
	struct variant job = { .bytes = (size_t)options->size,
			       .times = 1,
			       .source = b->buffer.source };
	unsigned int op;
	size_t i;

	for (op = 0; op < BMM_OPS; op++)
		for (i = 0; i < options->extents_nr; i++) {
			job.op = (enum bmm_op)op;
			job.extent = (size_t)options->extents[i];
			job.len = job.extent;
			job.scenario = extent_name(names[op], job.extent, "");
			job.fresh = true;
			variants_add(&b->variants, &job, "first");
			job.fresh = false;
			variants_add(&b->variants, &job, "settled");
		}
}

static void describe(const struct bench *b)
{
	printf("\"backend\": \"%s\"",
	       b->options.backend ? b->options.backend : "fastest");
}

const struct subject first_use_subject = {
	.name = "first-use",
	.sourced = true,
	.ops = (1U << BMM_OPS) - 1,
	.init = init,
	.describe = describe,
};
