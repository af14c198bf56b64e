// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Zero an extent, in one of two ways. Only the caller knows which is right:
 * bypassing the cache takes less than half the time if nobody reads the memory
 * soon, and costs up to three times as much if random accesses follow at once.
 */
#include "drain.h"
#include "select.h"

/**
 * bmm_clear() - zero memory that is used right away
 * @dst: any alignment
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Leaves the extent in the cache if it fits. Ordinary ordering.
 */
void bmm_clear(void *dst, size_t len)
{
	const struct bmm_backend *backend = bmm_selected(BMM_CLEAR, len, 0);

	if (bmm_serves(BMM_CLEAR, len) != BMM_CLEAR)
		bmm_clear_streaming(dst, len);
	else if (len)
		backend->clear(dst, len);
}

/**
 * bmm_clear_streaming() - zero memory that is prepared ahead of use
 * @dst: any alignment; whole cache lines are the fast case
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Bypasses the cache, and drains before it returns. A line that is only partly
 * inside the extent may stay in the cache.
 */
void bmm_clear_streaming(void *dst, size_t len)
{
	const struct bmm_backend *backend = bmm_selected(BMM_CLEAR_STREAMING,
							 len, 0);

	if (!len)
		return;
	backend->clear_streaming(dst, len);
	bmm_drain_stores();
}
