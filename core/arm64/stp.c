// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * STP: ordinary stores of two general registers. CPUs that see whole lines
 * written in order stop reading them, and some stop keeping them, on their
 * own.
 */
#include "../backends.h"

#define BMM_PAIR "stp"
#include "pair.h"

static bool supported(void)
{
	return true;
}

const struct bmm_backend bmm_arm64_stp = {
	.name = "stp",
	.flags = BMM_CACHED,
	.supported = supported,
	.stamp = stamp,
	.copy = copy,
	.clear = clear,
	.clear_streaming = clear,
	.drain = bmm_arm64_drain,
};
