// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Images of records, and stamping them. */
#include "turn.h"

static bool image_valid(const struct bmm_image *image)
{
	return image->size >= BMM_RECORD_MIN && image->size <= BMM_RECORD_MAX &&
	       !(image->size % 8);
}

/**
 * bmm_image_init() - make an image from one record, or from two that follow
 *                    each other
 * @image:  result
 * @record: the first record
 * @next:   the record after it, from which the step of each word is taken;
 *          NULL when all records are equal to @record
 * @size:   bytes of a record: a multiple of 8, BMM_RECORD_MIN to
 *          BMM_RECORD_MAX
 *
 * Return: 0, or -BMM_EINVAL for a @size out of range (@image is untouched).
 */
int bmm_image_init(struct bmm_image *image, const void *record,
		   const void *next, size_t size)
{
	const bmm_word *first = record, *second = next ? next : record;
	size_t w;

	if (size < BMM_RECORD_MIN || size > BMM_RECORD_MAX || size % 8)
		return -BMM_EINVAL;

	*image = (struct bmm_image){ .size = (uint32_t)size };
	for (w = 0; w < size / 8; w++) {
		image->word[w] = first[w];
		image->step[w] = second[w] - first[w];
		if (image->step[w])
			image->stepping |= 1U << w;
	}
	return 0;
}

/**
 * bmm_image_at() - the image of a run that starts @n records later
 * @out:   result; may be @image itself
 * @image: image of record 0
 * @n:     how many records (or units, if that is what the step counts) later
 */
void bmm_image_at(struct bmm_image *out, const struct bmm_image *image,
		  uint64_t n)
{
	size_t w;

	if (out != image)
		*out = *image;
	for (w = 0; w < image->size / 8; w++)
		out->word[w] = image->word[w] + n * image->step[w];
}

/* Whole records, at least one. */
static size_t records_in(size_t bytes, size_t size)
{
	return bytes < size ? 1 : bytes / size;
}

static void in_turns(char *p, const struct bmm_image *image, size_t count)
{
	size_t whole = count * image->size, done = 0, n;
	int node = bmm_host_node(p, whole);
	struct bmm_image at = *image;
	struct bmm_turn turn;

	for (; done < count; done += n, p += n * image->size) {
		bmm_image_at(&at, image, done);
		n = bmm_turn_begin(&turn, BMM_STAMP, whole,
				   (count - done) * image->size, node);
		n = records_in(n, image->size);
		turn.backend->stamp(p, &at, n);
		bmm_turn_end(&turn, n * image->size);
	}
}

/**
 * bmm_stamp() - write @count records that follow from one image
 * @dst:   first record, 8-byte aligned; written in ascending order, by some
 *         backends up to eight records at once, and not one byte outside
 *         @count * image->size
 * @image: what to write; held in registers where the record is 64 bytes
 * @count: number of records; 0 is a no-op
 *
 * Weakly ordered until bmm_drain(). May be preempted and migrated: a context
 * switch drains the CPU it leaves.
 *
 * The idea of stamping struct pages from a template instead of building each
 * is that of the "speed up ZONE_DEVICE memmap initialization" series on the
 * Linux memory management list (2026). Here the image stays in registers
 * instead of being refreshed in memory, so that no refresh can stall on store
 * forwarding, and what it holds is learned instead of coded.
 *
 * Return: 0, or -BMM_EINVAL for a misaligned @dst or an image that
 * bmm_image_init() did not make (nothing is written).
 */
int bmm_stamp(void *dst, const struct bmm_image *image, size_t count)
{
	const struct bmm_backend *backend;

	if (!count)
		return 0;
	if (!image_valid(image) || (uintptr_t)dst % 8)
		return -BMM_EINVAL;
	backend = bmm_turn_quick(BMM_STAMP, count * image->size);
	if (backend)
		backend->stamp(dst, image, count);
	else
		in_turns(dst, image, count);
	return 0;
}
