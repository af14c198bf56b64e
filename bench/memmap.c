// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "memmap": ways to write the struct pages of a device. Those of
 * the core come from its backend table.
 */
#include <stdio.h>

#include "bench.h"
#include "page.h"

#define SCENARIO     "memmap-stamp"
#define BACKENDS_MAX 8

/* The base stands twice: what differs between the two is chance. */
static const struct variant peers[] = {
	{ .name = "rebuild", .run = rebuild_run },
	{ .name = "rebuild-again", .run = rebuild_run },
	{ .name = "template-copy", .run = template_copy_run },
#ifdef __x86_64__
	{ .name = "rebuild-saferet", .run = rebuild_saferet_run },
	{ .name = "template-movnti", .run = template_movnti_run },
	{ .name = "template-norefresh", .run = template_still_run },
#endif
	{ .name = "limit", .run = limit_run, .word = true },
};

#define PEERS_NR (sizeof(peers) / sizeof(peers[0]))

static size_t add_backends(struct variant *variants)
{
	static char names[BACKENDS_MAX][32];
	size_t n = 0, i;

	for (i = 0; i < bmm_backends_nr && n < BACKENDS_MAX; i++) {
		if (!bmm_backend_can(bmm_backends[i], BMM_STAMP))
			continue;
		snprintf(names[n], sizeof(names[n]), "bulkmm:%s",
			 bmm_backends[i]->name);
		variants[n] = (struct variant){ .name = names[n],
						.run = stamp_run,
						.backend = bmm_backends[i] };
		n++;
	}
	return n;
}

static size_t init(struct variant *variants, const struct options *options,
		   const struct buffer *buffer)
{
	size_t n, i;

	(void)options;
	for (n = 0; n < PEERS_NR; n++)
		variants[n] = peers[n];
	variants[n++] = (struct variant){ .name = "bulkmm",
					  .run = stamp_run,
					  .chooses = true };
	n += add_backends(&variants[n]);
	for (i = 0; i < n; i++) {
		variants[i].scenario = SCENARIO;
		variants[i].units = buffer->bytes / sizeof(struct model_page);
		variants[i].times = 1;
		variants[i].extent = SECTION_PAGES * sizeof(struct model_page);
	}
	return n;
}

static void describe(const struct options *options, size_t count)
{
	printf("\"pages\": %zu, \"backend\": \"%s\"", count,
	       options_backend(options, BMM_STAMP));
}

const struct subject memmap_subject = {
	.name = "memmap",
	.per_unit = DEVICE_PAGE,
	.unit = sizeof(struct model_page),
	.ops = 1U << BMM_STAMP,
	.init = init,
	.describe = describe,
	.right = pages_right,
};
