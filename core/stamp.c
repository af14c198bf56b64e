// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Stamping records, and filling with a pattern. */
#include "serve.h"

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
	const struct bmm_backend *backend;
	struct bmm_job job = { .op = BMM_STAMP, .dst = dst, .image = image };

	if (!count)
		return 0;
	if (!image_valid(image) || (uintptr_t)dst % 8)
		return -BMM_EINVAL;
	job.len = count * image->size;
	backend = bmm_serving(BMM_STAMP, job.len);
	if (backend)
		backend->stamp(dst, image, count);
	else
		bmm_serve(&job);
	return 0;
}

/* Bytes of a record that holds whole patterns and whole words, or 0. */
static size_t record_of(size_t size)
{
	size_t bytes;

	if (!size || size > BMM_RECORD_MAX)
		return 0;
	/* A cache line is the fast case. */
	if (!(64 % size))
		return 64;
	for (bytes = BMM_RECORD_MIN; bytes <= BMM_RECORD_MAX; bytes += 8)
		if (!(bytes % size))
			return bytes;
	return 0;
}

/* Writes @len bytes of the endless pattern, starting at offset @from. */
static void repeat(char *to, const char *pattern, size_t size, size_t from,
		   size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = pattern[(from + i) % size];
}

/**
 * bmm_fill() - repeat a pattern
 * @dst:     any alignment; 64-byte lines are the fast case
 * @pattern: @size bytes, the first of which goes to @dst; must not overlap it
 * @size:    bytes of the pattern: 1 to 16, or any size of which a multiple of 8
 *           from BMM_RECORD_MIN to BMM_RECORD_MAX holds whole patterns
 * @len:     bytes to write; the last pattern may be cut; 0 is a no-op
 *
 * Stamps whole records, as bmm_stamp() does; what lies before the first cache
 * line and after the last record is written by ordinary stores. Weakly ordered
 * until bmm_drain().
 *
 * Return: 0, or -BMM_EINVAL for a @size that fits no record (nothing is
 * written).
 */
int bmm_fill(void *dst, const void *pattern, size_t size, size_t len)
{
	size_t bytes = record_of(size), head = -(uintptr_t)dst % 64, body;
	bmm_word record[BMM_RECORD_WORDS];
	struct bmm_image image;
	char *p = dst;

	if (!bytes)
		return -BMM_EINVAL;
	if (head > len)
		head = len;
	body = (len - head) / bytes * bytes;
	repeat(p, pattern, size, 0, head);
	if (body) {
		repeat((char *)record, pattern, size, head, bytes);
		bmm_image_init(&image, record, NULL, bytes);
		bmm_stamp(p + head, &image, body / bytes);
	}
	repeat(p + head + body, pattern, size, head + body, len - head - body);
	return 0;
}
