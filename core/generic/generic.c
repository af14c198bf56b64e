// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plain C for any architecture: the reference that the other backends are
 * tested against, and the host's memcpy() and memset(), which the cached
 * operations must not be slower than.
 */
#include "../bmm.h"

static void stamp(void *dst, const struct bmm_image *image, size_t count)
{
	size_t words = image->size / 8;
	bmm_word *out = dst;
	size_t n, w;

	for (n = 0; n < count; n++)
		for (w = 0; w < words; w++)
			*out++ = image->word[w] + n * image->step[w];
}

static void copy(void *dst, const void *src, size_t len)
{
	bmm_memcpy(dst, src, len);
}

static void clear(void *dst, size_t len)
{
	bmm_memset(dst, 0, len);
}

const struct bmm_backend bmm_generic = {
	.name = "generic",
	.stamp = stamp,
	.copy = BMM_COPY_FN(copy),
	.copy_streaming = BMM_COPY_FN(copy),
	.clear = clear,
	.clear_streaming = clear,
};
