// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * STP: ordinary stores of a pair of general registers. CPUs that detect whole
 * lines written in order stop reading them, and some also stop caching them.
 */

#define BMM_PAIR "stp"
#include "pair.h"

const struct bmm_backend bmm_stp[] = {
	{ .name = "stp", .copy = BMM_COPY_FN(copy), .clear = clear },
	{ 0 },
};
