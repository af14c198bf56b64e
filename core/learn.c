// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Learn, verify, predict.
 *
 * Nothing here knows what a struct page holds. Word w of record r of unit u is
 * predicted to be
 *
 *	image(r)[w] + u * step(r)[w]
 *
 * where the records from the first repeating one on, the tails, are all alike.
 * The first two units give images and steps; all learned units must match the
 * prediction.
 */
#include "learn.h"

static const bmm_word *record_at(const void *base, const struct bmm_geometry *g,
				 size_t unit, size_t record)
{
	return (const bmm_word *)((const char *)base + unit * g->stride +
				  record * g->record);
}

static bool same_record(const bmm_word *rec, const struct bmm_image *image)
{
	uint64_t differ = 0;
	size_t w;

	for (w = 0; w < image->size / 8; w++)
		differ |= rec[w] ^ image->word[w];
	return !differ;
}

/*
 * How many of the @n records before @end equal @image. One loop without calls,
 * so that memory is the limit.
 */
static size_t count_same(const bmm_word *end, const struct bmm_image *image,
			 size_t n)
{
	const uint64_t a = image->word[0], b = image->word[1],
		       c = image->word[2], d = image->word[3],
		       e = image->word[4], f = image->word[5],
		       g = image->word[6], h = image->word[7];
	size_t i;

	for (i = 0; i < n; i++) {
		end -= 8;
		if (((end[0] ^ a) | (end[1] ^ b) | (end[2] ^ c) | (end[3] ^ d) |
		     (end[4] ^ e) | (end[5] ^ f) | (end[6] ^ g) | (end[7] ^ h)))
			break;
	}
	return i;
}

/*
 * The first record of a unit from which all, to the unit's end, equal the
 * tail. Goes backwards: the cache still holds what the kernel wrote last, but
 * not a whole 1 GiB unit.
 */
static size_t tails_begin(const struct bmm_layout *l, const void *base,
			  size_t unit)
{
	const struct bmm_geometry *g = &l->geometry;
	size_t r = g->records;

	if (g->record == 64)
		return r - count_same(record_at(base, g, unit, r), &l->tail, r);
	while (r && same_record(record_at(base, g, unit, r - 1), &l->tail))
		r--;
	return r;
}

/*
 * Takes the heads to be what precedes the last run of equal records, as far as
 * there is room for heads: if there are more, the unit will not verify.
 */
static void find_heads(struct bmm_layout *l, const void *base, size_t unit)
{
	const struct bmm_geometry *g = &l->geometry;
	size_t r = g->records - 1;

	bmm_image_init(&l->tail, record_at(base, g, unit, r), NULL, g->record);
	if (r > BMM_LAYOUT_HEADS)
		r = BMM_LAYOUT_HEADS;
	while (r && same_record(record_at(base, g, unit, r - 1), &l->tail))
		r--;
	l->heads = (unsigned int)r;
}

/* Takes the images of the heads and of the tail, which step to unit 1. */
static void take_images(struct bmm_layout *l, const void *base)
{
	const struct bmm_geometry *g = &l->geometry;
	unsigned int r;

	for (r = 0; r <= l->heads; r++)
		bmm_image_init(&l->image[r], record_at(base, g, 0, r),
			       record_at(base, g, 1, r), g->record);
	l->unit = 0;
}

/*
 * Advances an image by @n units; @n may be negative. Touches only the words
 * that step: this runs for each image of each unit, and most images have one
 * such word or none.
 */
static void advance(struct bmm_image *image, uint64_t n)
{
	uint32_t pending = image->stepping;
	unsigned int w;

	for (; pending; pending &= pending - 1) {
		w = (unsigned int)__builtin_ctz(pending);
		image->word[w] += n * image->step[w];
	}
}

/* Advances the images from their current unit to another. */
static void move_to(struct bmm_layout *l, uint64_t unit)
{
	unsigned int r;

	for (r = 0; r <= l->heads; r++)
		advance(&l->image[r], unit - l->unit);
	bmm_memcpy(l->tail.word, l->image[l->heads].word, l->geometry.record);
	l->unit = unit;
}

/*
 * Two units cannot disprove a step. Accept only steps that are zero or equal to
 * the distance of the units: pointers into the unit itself.
 */
static int explain_steps(struct bmm_layout *l)
{
	unsigned int r;
	size_t w;

	for (r = 0; r <= l->heads; r++)
		for (w = 0; w < l->geometry.record / 8; w++)
			if (l->image[r].step[w] &&
			    l->image[r].step[w] != l->geometry.stride) {
				l->differs = l->geometry.records + r;
				return -BMM_EUNLIKE;
			}
	return 0;
}

static bool valid(const struct bmm_geometry *g)
{
	return g->record >= BMM_RECORD_MIN && g->record <= BMM_RECORD_MAX &&
	       !(g->record % 8) && g->records && !(g->stride % 8) &&
	       g->stride / g->records >= g->record;
}

/**
 * bmm_layout_verify() - whether another unit is as predicted
 * @layout: from a bmm_learn() that returned 0
 * @base:   first record of unit 0
 * @unit:   index of the unit
 *
 * Return: 0, or -BMM_EUNLIKE, and @layout->differs says where.
 */
int bmm_layout_verify(struct bmm_layout *layout, const void *base, size_t unit)
{
	const struct bmm_geometry *g = &layout->geometry;
	size_t r;

	move_to(layout, unit);
	r = tails_begin(layout, base, unit);
	if (r <= layout->heads)
		for (r = layout->heads;
		     r && same_record(record_at(base, g, unit, r - 1),
				      &layout->image[r - 1]);
		     r--)
			;
	if (!r)
		return 0;
	layout->differs = unit * g->records + r - 1;
	return -BMM_EUNLIKE;
}

/**
 * bmm_learn() - learn the layout of an array from its first units, and verify
 * @layout:   result; about 3 KB, too much for a kernel stack
 * @base:     first record of unit 0, 8-byte aligned
 * @geometry: how units lie in memory
 * @units:    number of units to learn from, at least 2; with fewer than
 *            BMM_LEARN_UNITS, a word must be the same in all units or step by
 *            their distance, and the proof is as strong only for long units
 *
 * Only reads @base. Compares every byte of all @units with its prediction.
 *
 * Return: 0; -BMM_EINVAL for a geometry out of range; -BMM_EUNLIKE if the
 * units do not follow one layout (@layout->differs says where).
 */
int bmm_learn(struct bmm_layout *layout, const void *base,
	      const struct bmm_geometry *geometry, size_t units)
{
	size_t u = units;
	int err = 0;

	if (units < 2 || (uintptr_t)base % 8 || !valid(geometry))
		return -BMM_EINVAL;
	layout->geometry = *geometry;
	find_heads(layout, base, units - 1);
	take_images(layout, base);
	while (!err && u--)
		err = bmm_layout_verify(layout, base, u);
	if (!err && units < BMM_LEARN_UNITS)
		err = explain_steps(layout);
	return err;
}

/**
 * bmm_layout_stamp() - write units as learned
 * @layout:  from a bmm_learn() that returned 0; its images advance to the units
 *           written, so only one caller at a time
 * @backend: which stores to use; the caller drains
 * @base:    first record of unit 0 (the array, not where to start)
 * @first:   first unit to write
 * @units:   number of units
 *
 * Each record is written once and whole; gaps between units are not touched.
 * Order of stores and memory ordering as for bmm_stamp().
 */
void bmm_layout_stamp(struct bmm_layout *layout,
		      const struct bmm_backend *backend, void *base,
		      uint64_t first, size_t units)
{
	const struct bmm_geometry *g = &layout->geometry;
	char *unit = (char *)base + first * g->stride, *p;
	uint64_t end = first + units;
	unsigned int r;

	/* Single records without gaps are one run. */
	if (g->records == 1 && g->stride == g->record) {
		move_to(layout, first);
		backend->stamp(unit, &layout->image[0], units);
		return;
	}
	for (; first < end; first++, unit += g->stride) {
		move_to(layout, first);
		for (r = 0, p = unit; r < layout->heads; r++, p += g->record)
			backend->stamp(p, &layout->image[r], 1);
		backend->stamp(p, &layout->tail, g->records - r);
	}
}
