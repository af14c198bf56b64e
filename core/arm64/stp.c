// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * STP: ordinary stores of two general registers. CPUs that see whole lines
 * written in order stop reading them, and some stop keeping them, on their
 * own.
 */

#define BMM_PAIR "stp"
#include "pair.h"

const struct bmm_backend bmm_stp[] = {
	{ .name = "stp", .copy = copy, .clear = clear },
	{ 0 },
};
