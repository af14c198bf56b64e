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

static const struct variant peers[] = {
	{ .name = "rebuild", .run = rebuild_run },
	{ .name = "template-copy", .run = template_copy_run },
#ifdef __x86_64__
	{ .name = "rebuild-saferet", .run = rebuild_saferet_run },
	{ .name = "template-movnti", .run = template_movnti_run },
	{ .name = "template-norefresh", .run = template_still_run },
#endif
	{ .name = "limit", .run = limit_run, .word = true },
};

#define PEERS_NR (sizeof(peers) / sizeof(peers[0]))

/*
 * "bulkmm" takes the backend in force; its namesake among the "bulkmm:NAME"
 * is the same code a second time, so the two are an A/A control.
 */
static size_t init(struct variant *variants, const struct options *options)
{
	static char names[BACKENDS_MAX][32];
	size_t n, i;

	(void)options;
	for (n = 0; n < PEERS_NR; n++)
		variants[n] = peers[n];
	variants[n++] = (struct variant){ .name = "bulkmm",
					  .run = stamp_run,
					  .backend = bmm_backend_default(
						  BMM_STAMP) };
	for (i = 0; i < bmm_backends_nr && i < BACKENDS_MAX; i++) {
		if (!bmm_backend_can(bmm_backends[i], BMM_STAMP))
			continue;
		snprintf(names[i], sizeof(names[i]), "bulkmm:%s",
			 bmm_backends[i]->name);
		variants[n] = (struct variant){ .name = names[i],
						.run = stamp_run,
						.backend = bmm_backends[i] };
		n++;
	}
	for (i = 0; i < n; i++)
		variants[i].scenario = SCENARIO;
	return n;
}

static void describe(size_t count)
{
	printf("\"pages\": %zu, \"backend\": \"%s\"", count,
	       bmm_backend_default(BMM_STAMP)->name);
}

static size_t bytes_of(const struct variant *variant, size_t count)
{
	(void)variant;
	return count * sizeof(struct model_page);
}

const struct subject memmap_subject = {
	.name = "memmap",
	.per_unit = DEVICE_PAGE,
	.unit = sizeof(struct model_page),
	.init = init,
	.describe = describe,
	.verify = verify,
	.bytes = bytes_of,
};
