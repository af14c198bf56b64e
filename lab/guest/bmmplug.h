/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of bmmplug share. */
#ifndef BMMPLUG_H
#define BMMPLUG_H

#include <stdint.h>

#define PATIENCE 120000000000UL /* ns: two minutes */

/* Print why it failed; returns 1, for main() to return. */

/* bmmplug_use.c */
int use(int node, uint64_t bytes, uint64_t seed, const char *filled,
	const char *go);

/* bmmplug_blocks.c */
int offline(const char *node);
int timed_wait(const char *file, const char *text, const char *node, int blocks);

#endif
