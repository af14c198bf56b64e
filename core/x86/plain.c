// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ordinary stores: what is left where non-temporal stores are slow, and the
 * peer that shows what going around the cache is worth.
 */
#include "../backends.h"
#include "record.h"

static bool supported(void)
{
	return true;
}

BMM_X86_STAMP("movq")

static void copy(void *dst, const void *src, size_t len)
{
	bmm_memcpy(dst, src, len);
}

static void drain(void)
{
}

const struct bmm_backend bmm_x86_plain = {
	.name = "plain",
	.flags = BMM_CACHED,
	.supported = supported,
	.stamp = stamp,
	.copy = copy,
	.drain = drain,
};
