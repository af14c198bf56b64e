// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Zeroing an extent, two ways. Which is right is the caller's knowledge: going
 * around the cache takes less than half the time if nobody looks at the memory
 * soon, and costs up to three times as much if it is used at random at once.
 */
#include "turn.h"

static void in_turns(char *p, size_t len, enum bmm_op op)
{
	int node = bmm_host_node(p, len);
	size_t left = len, n;
	struct bmm_turn turn;

	for (; left; left -= n, p += n) {
		n = bmm_turn_begin(&turn, op, len, left, node);
		if (op == BMM_CLEAR)
			turn.backend->clear(p, n);
		else
			turn.backend->clear_streaming(p, n);
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
		in_turns(dst, len, BMM_CLEAR);
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
		in_turns(dst, len, BMM_CLEAR_STREAMING);
		return;
	}
	backend->clear_streaming(dst, len);
	backend->drain();
}
