// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Streaming copy with the backend in force, and the drain of all streaming. */
#include "backends.h"
#include "turn.h"

static bool apart(const void *a, const void *b, size_t len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x >= len : x - y >= len;
}

static void in_turns(char *p, const char *s, size_t len)
{
	int node = bmm_host_node(p, len);
	size_t left = len, n;
	struct bmm_turn turn;

	for (; left; left -= n, p += n, s += n) {
		n = bmm_turn_begin(&turn, BMM_COPY, len, left, node);
		turn.backend->copy(p, s, n);
		bmm_turn_end(&turn, n);
	}
}

/**
 * bmm_copy_streaming() - copy data that is written once and not read soon
 * @dst: destination, any alignment
 * @src: source, any alignment; must not overlap @dst: asserted in debug
 *       builds (BMM_DEBUG), undefined content otherwise
 * @len: bytes; 0 is a no-op, and the pointers may then be NULL
 *
 * Goes around the cache only if @dst and @len let the whole transfer be
 * non-temporal (@dst and @len multiples of 8, or 4 bytes at a multiple of 4),
 * in ascending order; an ordinary copy otherwise, because a line written half
 * this way and half that way costs more than either; an ordinary copy too where
 * that has been measured to be faster. Weakly ordered until bmm_drain().
 *
 * The rule is that of memcpy_flushcache() in Linux and of libpmem2's
 * PMEM2_F_MEM_NONTEMPORAL, which both go around the cache to the last byte
 * that alignment allows, made strict: all or nothing.
 */
void bmm_copy_streaming(void *dst, const void *src, size_t len)
{
	const struct bmm_backend *backend = bmm_turn_quick(BMM_COPY, len);

	bmm_assert(apart(dst, src, len));
	if (!len)
		return;
	if (backend)
		backend->copy(dst, src, len);
	else if (((uintptr_t)dst | len) % 8 && len >= BMM_TURN_MIN)
		bmm_generic.copy(dst, src, len); /* all would: do not compare */
	else
		in_turns(dst, src, len);
}

/**
 * bmm_drain() - wait until all streaming stores of this CPU are visible
 *
 * Must stand between a streaming operation and the first access to, or
 * publication of, what it wrote. The strongest drain of the architecture,
 * whatever is in force now: the stores may have been another backend's.
 */
void bmm_drain(void)
{
	BMM_DRAINS_ALL.drain();
}
