// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The operations as programs call them: each asks which backend is selected.
 *
 * There are two of each, since only the caller knows which is right: bypassing
 * the cache takes less than half the time if nobody reads the memory soon, and
 * costs up to three times as much if random accesses follow at once.
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

	if (bmm_serves(BMM_CLEAR, len) != BMM_CLEAR) {
		bmm_drain_stores(); /* not ahead of earlier stores, either */
		bmm_clear_streaming(dst, len); /* drains */
	} else if (len) {
		backend->clear(dst, len);
	}
}

/**
 * bmm_clear_streaming() - zero memory that is prepared ahead of use
 * @dst: any alignment; whole cache lines are the fast case
 * @len: bytes; 0 is a no-op, and @dst may then be NULL
 *
 * Bypasses the cache. A line that is only partly inside the extent may stay in
 * the cache. Weakly ordered until bmm_drain(), as all streaming operations; but
 * as long as the library is libbulkmm.so.0 this one drains by itself, too,
 * which version 0.1 promised.
 */
void bmm_clear_streaming(void *dst, size_t len)
{
	const struct bmm_backend *backend = bmm_selected(BMM_CLEAR_STREAMING,
							 len, 0);

	if (len)
		backend->clear_streaming(dst, len);
	bmm_drain_stores();
}

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
 * Leaves the destination in the cache if it fits. Ordinary ordering.
 */
void bmm_copy(void *dst, const void *src, size_t len)
{
	const struct bmm_backend *backend = bmm_selected(
		BMM_COPY, len, (uintptr_t)dst ^ (uintptr_t)src);

	bmm_assert(apart(dst, src, len));
	if (bmm_serves(BMM_COPY, len) != BMM_COPY) {
		bmm_drain_stores(); /* as in bmm_clear() */
		bmm_copy_streaming(dst, src, len);
		bmm_drain_stores();
	} else if (len) {
		backend->copy(dst, src, len);
	}
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
 * last one may stay in the cache. In no particular order, and weakly ordered
 * until bmm_drain().
 *
 * Not persistent by itself, unlike memcpy_flushcache() in Linux: lines may be
 * in the cache still, on arm64 all of them. bmm_persist() writes them back.
 */
void bmm_copy_streaming(void *dst, const void *src, size_t len)
{
	const struct bmm_backend *backend = bmm_selected(
		BMM_COPY_STREAMING, len, (uintptr_t)dst ^ (uintptr_t)src);

	bmm_assert(apart(dst, src, len));
	if (len)
		backend->copy_streaming(dst, src, len);
}

/*
 * A memmove() of so much is a loop in glibc; of more, it may be REP MOVSB, slow
 * unless both sides are aligned alike (3.5 instead of 57 GB/s, Zen 4).
 */
#define PIECE 2048U

/**
 * bmm_move() - copy data that is used right away, within a range
 * @dst: destination, any alignment
 * @src: source, any alignment; may overlap @dst in any way
 * @len: bytes; 0 is a no-op, and the pointers may then be NULL
 *
 * What bmm_copy() does where the ranges do not overlap. Leaves the destination
 * in the cache as far as it fits. Ordinary ordering.
 */
void bmm_move(void *dst, const void *src, size_t len)
{
	uintptr_t behind = (uintptr_t)src - (uintptr_t)dst;
	const char *s = src;
	char *p = dst;

	/* From the end on: never REP MOVSB. */
	if (-behind < len) {
		bmm_memmove(dst, src, len);
		return;
	}
	for (; behind < len && len > PIECE; len -= PIECE) {
		bmm_memmove(p, s, PIECE);
		p += PIECE;
		s += PIECE;
	}
	if (behind < len)
		bmm_memmove(p, s, len);
	else
		bmm_copy(p, s, len);
}

/**
 * bmm_move_streaming() - copy data that is not read soon, within a range
 * @dst: destination, any alignment
 * @src: source, any alignment; may overlap @dst in any way
 * @len: bytes; 0 is a no-op, and the pointers may then be NULL
 *
 * What bmm_copy_streaming() does, in either direction. Weakly ordered until
 * bmm_drain().
 *
 * Where the ranges overlap closely, the lines it writes are in the cache, since
 * they were read a moment before: bmm_move() takes half the time (a Xeon with
 * AMX), this one spares the cache.
 */
void bmm_move_streaming(void *dst, const void *src, size_t len)
{
	char buffer[2 * PIECE] __attribute__((__aligned__(64)));
	bool down = (uintptr_t)dst > (uintptr_t)src;
	size_t done, at, n;
	uintptr_t edge;

	if (apart(dst, src, len)) {
		bmm_copy_streaming(dst, src, len);
		return;
	}
	for (done = 0; done < len; done += n) {
		n = len - done;
		if (n > sizeof(buffer)) {
			/* The next piece begins, or ends, with a whole line. */
			n = sizeof(buffer);
			edge = (uintptr_t)dst +
			       (down ? len - done - n : done + n);
			n -= (down ? -edge : edge) % 64;
		}
		at = down ? len - done - n : done;
		bmm_copy(buffer, (const char *)src + at, n);
		bmm_copy_streaming((char *)dst + at, buffer, n);
	}
}

/**
 * bmm_drain() - order streaming stores before all stores that follow
 *
 * Call it between a streaming operation and the first access to, or
 * publication of, what it wrote: whoever sees a later store of this thread,
 * another CPU or a device that reads memory coherently, sees what was written
 * before. It works for every backend.
 */
void bmm_drain(void)
{
	bmm_drain_stores();
}

/**
 * bmm_stamp() - write @count records that follow from one image
 * @dst:   first record, 8-byte aligned; written in ascending order, nothing
 *         outside @count * image->size bytes
 * @image: what to write; held in registers if the record is 64 bytes
 * @count: number of records; 0 is a no-op
 *
 * Bypasses the cache. Weakly ordered until bmm_drain(). May be preempted and
 * migrated: a context switch drains the stores of the CPU it leaves.
 *
 * Stamping struct pages from a template instead of building each one is the
 * idea of the "speed up ZONE_DEVICE memmap initialization" series on the Linux
 * memory management list (2026). Here the image stays in registers instead of
 * being refreshed in memory, so no refresh can stall on store forwarding, and
 * its content is learned instead of coded.
 *
 * Return: 0, or -BMM_EINVAL for a misaligned @dst or an image that
 * bmm_image_init() did not make (nothing is written).
 */
int bmm_stamp(void *dst, const struct bmm_image *image, size_t count)
{
	if (!count)
		return 0;
	if ((uintptr_t)dst % 8 || image->size < BMM_RECORD_MIN ||
	    image->size > BMM_RECORD_MAX || image->size % 8)
		return -BMM_EINVAL;
	bmm_selected(BMM_STAMP, count * image->size, 0)->stamp(dst, image, count);
	return 0;
}
