// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Zeroing an extent, two ways. Which is right is the caller's knowledge: going
 * around the cache takes less than half the time if nobody looks at the memory
 * soon, and costs up to three times as much if it is used at random at once.
 */
#include "turn.h"

/**
 * bmm_turn_clear() - zero an extent in turns, for who knows its memory node
 * @dst:  any alignment
 * @len:  bytes
 * @op:   BMM_CLEAR or BMM_CLEAR_STREAMING
 * @node: memory node of @dst; negative if not known
 *
 * Drains before it returns.
 */
void bmm_turn_clear(void *dst, size_t len, enum bmm_op op, int node)
{
	struct bmm_turn turn;
	size_t left, n;
	char *p = dst;

	for (left = len; left; left -= n, p += n) {
		n = bmm_turn_begin(&turn, op, len, left, node);
		bmm_backend_clear(turn.backend, op, p, n);
		bmm_turn_end(&turn, n);
	}
}

/**
 * bmm_clear() - zero memory that is used at once
 * @dst: any alignment
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Leaves the extent in the cache as far as it fits. Ordinary ordering.
 */
void bmm_clear(void *dst, size_t len)
{
	const struct bmm_backend *backend = bmm_turn_quick(BMM_CLEAR, len);

	if (!len)
		return;
	if (backend)
		backend->clear(dst, len);
	else
		bmm_turn_clear(dst, len, BMM_CLEAR, bmm_host_node(dst, len));
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
	const struct bmm_backend *backend = bmm_turn_quick(BMM_CLEAR_STREAMING,
							   len);

	if (!len)
		return;
	if (!backend) {
		bmm_turn_clear(dst, len, BMM_CLEAR_STREAMING,
			       bmm_host_node(dst, len));
		return;
	}
	backend->clear_streaming(dst, len);
	backend->drain();
}
