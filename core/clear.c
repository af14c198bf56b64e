// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Zeroing an extent, two ways. Which is right is the caller's knowledge: going
 * around the cache takes less than half the time if nobody looks at the memory
 * soon, and costs up to three times as much if it is used at random at once.
 */
#include "bmm.h"

/**
 * bmm_clear() - zero memory that is used at once
 * @dst: any alignment
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Leaves the extent in the cache as far as it fits. Ordinary ordering.
 */
void bmm_clear(void *dst, size_t len)
{
	if (len)
		bmm_backend(BMM_CLEAR)->clear(dst, len);
}

/**
 * bmm_clear_streaming() - zero memory that is prepared ahead of use
 * @dst: any alignment; whole cache lines are the fast case
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Goes around the cache, and drains before it returns. A line that belongs to
 * the extent in part is written in the ordinary way, and only so.
 */
void bmm_clear_streaming(void *dst, size_t len)
{
	const struct bmm_backend *backend = bmm_backend(BMM_CLEAR_STREAMING);

	if (!len)
		return;
	backend->clear_streaming(dst, len);
	backend->drain();
}
