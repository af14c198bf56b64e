// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "copy": ways to copy memory extent by extent: through a source
 * and a destination that are in no cache; repeatedly between the same two
 * extents ("again") if a cache can hold both; and each with both misaligned.
 */
#include <string.h>

#include "bench.h"

/* In longer extents misalignment costs no more. */
#define MISALIGNED_MAX ((size_t)64 << 20)

static void glibc(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

/* The base is listed twice: the difference between the two is noise. */
static struct variant peers[] = {
	{ .name = "glibc", .method = glibc },
	{ .name = "glibc-again", .method = glibc },
#ifdef __x86_64__
	{ .name = "rep-movsb", .method = rep_movsb },
#endif
	{ .name = "libpmem2", .method = pmem_copy },
	{ .name = "plain", .method = plain_copy },
};

static void add_misaligned(struct bench *b, struct variant *job)
{
	if (job->extent > MISALIGNED_MAX)
		return;
	job->shifted = true;
	job->len -= SHIFT_CUT;
	extents_add(b, *job, "-misaligned");
}

static const struct extents extents = {
	.cached = BMM_COPY,
	.streaming = BMM_COPY_STREAMING,
	.peers = peers,
	.peers_nr = sizeof(peers) / sizeof(*peers),
	.more = add_misaligned,
};

const struct subject copy_subject = {
	.name = "copy",
	.sourced = true,
	.ops = 1U << BMM_COPY | 1U << BMM_COPY_STREAMING,
	.extents = &extents,
	.init = extents_init,
	.describe = extents_describe,
};
