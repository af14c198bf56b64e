// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Stamping records. */
#include "select.h"

static bool image_valid(const struct bmm_image *image)
{
	return image->size >= BMM_RECORD_MIN && image->size <= BMM_RECORD_MAX &&
	       !(image->size % 8);
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
	if (!image_valid(image) || (uintptr_t)dst % 8)
		return -BMM_EINVAL;
	bmm_selected(BMM_STAMP, count * image->size, 0)->stamp(dst, image, count);
	return 0;
}
