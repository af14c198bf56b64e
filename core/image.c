// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Images of records. */
#include "bmm.h"

/**
 * bmm_image_init() - make an image from one record or two consecutive ones
 * @image:  result
 * @record: the first record, any alignment
 * @next:   the record after it, which gives the step of each word; NULL if all
 *          records equal @record
 * @size:   bytes of a record: a multiple of 8, BMM_RECORD_MIN to
 *          BMM_RECORD_MAX
 *
 * Return: 0, or -BMM_EINVAL for a @size out of range (@image is untouched).
 */
int bmm_image_init(struct bmm_image *image, const void *record,
		   const void *next, size_t size)
{
	const char *first = record, *second = next ? next : record;
	uint64_t word, then;
	size_t w;

	if (size < BMM_RECORD_MIN || size > BMM_RECORD_MAX || size % 8)
		return -BMM_EINVAL;

	*image = (struct bmm_image){ .size = (uint32_t)size };
	for (w = 0; w < size / 8; w++) {
		bmm_memcpy(&word, first + 8 * w, 8);
		bmm_memcpy(&then, second + 8 * w, 8);
		image->word[w] = word;
		image->step[w] = then - word;
		if (image->step[w])
			image->stepping |= 1U << w;
	}
	return 0;
}

/**
 * bmm_image_at() - the image of a run that starts @n records later
 * @out:   result; may be @image itself
 * @image: image of record 0
 * @n:     number of records (or of units, if the step is per unit)
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
