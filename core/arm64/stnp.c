// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * STNP: stores of two general registers with the hint that they are not used
 * again soon. What a CPU makes of the hint is its own affair: some write
 * around the cache, some do the same as for STP. To DMB they are stores like
 * any other.
 */
#include "../backends.h"

#define BMM_PAIR "stnp"
#include "pair.h"

static bool supported(void)
{
	return true;
}

const struct bmm_backend bmm_arm64_stnp = {
	.name = "stnp",
	.flags = 0,
	.supported = supported,
	.stamp = stamp,
	.copy = copy,
	.clear_streaming = clear,
	.drain = bmm_arm64_drain,
};
