// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two kernels in one process: each has its image, at an address of its own, and
 * its copy of what is marked SIDE, which is exchanged when the other one runs.
 */
#include <string.h>

#include "native.h"

extern char __start_side[], __stop_side[];

static char *saved; /* the copy of the side that is not running */
static unsigned int now;

static size_t side_bytes(void)
{
	return (size_t)(__stop_side - __start_side);
}

/* Which one is running. */
unsigned int side_now(void)
{
	return now;
}

/* Puts the first one aside; of the second one nothing is known yet. */
void side_begin(void)
{
	saved = require_memory(side_bytes());
	memcpy(saved, __start_side, side_bytes());
	memset(__start_side, 0, side_bytes());
	now = 1;
}

/* Changes sides, unless it is running already. */
void side_enter(unsigned int side)
{
	char *at = __start_side, *from = saved, swapped;

	if (side == now)
		return;
	for (; at < __stop_side; at++, from++) {
		swapped = *at;
		*at = *from;
		*from = swapped;
	}
	now = side;
	state_cpu();
}
