// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Copying, with the destination left in the cache or bypassing it. */
#include "drain.h"
#include "serve.h"

static bool apart(const void *a, const void *b, size_t len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x >= len : x - y >= len;
}

/**
 * bmm_copy() - copy data that is used right away
 * @dst: destination, any alignment
 * @src: source, any alignment; must not overlap @dst: asserted in debug
 *       builds (BMM_DEBUG), undefined content otherwise
 * @len: bytes; 0 is a no-op, and the pointers may then be NULL
 *
 * Leaves the destination in the cache as far as it fits. Ordinary ordering.
 */
void bmm_copy(void *dst, const void *src, size_t len)
{
	const struct bmm_backend *backend = bmm_serving(BMM_COPY, len);

	bmm_assert(apart(dst, src, len));
	if (!len)
		return;
	if (backend)
		backend->copy(dst, src, len);
	else
		bmm_serve(&(struct bmm_job){
			.op = BMM_COPY, .dst = dst, .src = src, .len = len });
}

/**
 * bmm_copy_streaming() - copy data that is written once and not read soon
 * @dst: destination, any alignment; whole cache lines are the fast case
 * @src: source, any alignment; must not overlap @dst: asserted in debug
 *       builds (BMM_DEBUG), undefined content otherwise
 * @len: bytes; 0 is a no-op, and the pointers may then be NULL
 *
 * The body of the transfer bypasses the cache. Where @dst or @len is not a
 * multiple of 8, the bytes before the first whole cache line and after the
 * last one may stay in the cache. Ascending order. Weakly ordered until
 * bmm_drain().
 *
 * Same contract as memcpy_flushcache() in Linux and PMEM2_F_MEM_NONTEMPORAL in
 * libpmem2.
 */
void bmm_copy_streaming(void *dst, const void *src, size_t len)
{
	const struct bmm_backend *backend = bmm_serving(BMM_COPY_STREAMING, len);

	bmm_assert(apart(dst, src, len));
	if (!len)
		return;
	if (backend)
		backend->copy_streaming(dst, src, len);
	else
		bmm_serve(&(struct bmm_job){ .op = BMM_COPY_STREAMING,
					     .dst = dst,
					     .src = src,
					     .len = len });
}

/**
 * bmm_drain() - wait until all streaming stores of this thread are visible
 *
 * Call it between a streaming operation and the first access to, or
 * publication of, what it wrote. It works for every backend.
 */
void bmm_drain(void)
{
	bmm_drain_stores();
}
