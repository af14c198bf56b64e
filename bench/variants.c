// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The variants of this run; those of the core come from its backend table. */
#include <stdio.h>

#include "bench.h"

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

/**
 * variants_init() - fill the table of variants
 * @variants: room for VARIANTS_MAX of them
 *
 * "bulkmm" takes the backend in force; its namesake among the "bulkmm:NAME"
 * is the same code a second time, so the two are an A/A control.
 *
 * Return: how many there are.
 */
size_t variants_init(struct variant *variants)
{
	static char names[VARIANTS_MAX][32];
	size_t n, i;

	for (n = 0; n < PEERS_NR; n++)
		variants[n] = peers[n];
	variants[n++] = (struct variant){ .name = "bulkmm",
					  .run = stamp_run,
					  .backend = bmm_backend(BMM_STAMP) };
	for (i = 0; i < bmm_backends_nr && n < VARIANTS_MAX; i++) {
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
