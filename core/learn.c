// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Learn, verify, predict.
 *
 * Nothing here knows what a struct page holds. Word w of record r of unit u is
 * predicted to be
 *
 *	image(r)[w] + u * unit_step(r)[w]
 *
 * where the records from the first repeating one on share one image that may
 * also step by a constant inside the unit (page->virtual in some 32-bit
 * layouts; zero on every kernel with a virtual memmap). The first two units
 * give images and steps; all learned units must match the prediction.
 */
#include "learn.h"

static const bmm_word *record_at(const void *base, const struct bmm_geometry *g,
				 size_t unit, size_t record)
{
	return (const bmm_word *)((const char *)base + unit * g->stride +
				  record * g->record);
}

/* Whether there are no gaps between the records, and no tails. */
static bool is_run(const struct bmm_geometry *g)
{
	return g->records == 1 && g->stride == g->record;
}

/* An image of the record found there. */
static void take(struct bmm_image *image, const void *base,
		 const struct bmm_geometry *g, size_t unit, size_t record)
{
	bmm_image_init(image, record_at(base, g, unit, record), NULL, g->record);
}

static bool same_record(const bmm_word *rec, const struct bmm_image *image)
{
	const uint64_t *word = image->word;
	uint64_t differ = 0;
	size_t w;

	for (w = 0; w < image->size / 8; w++)
		differ |= rec[w] ^ word[w];
	return !differ;
}

/*
 * Advances an image by @n times the steps of another. Touches only the words
 * that step: this runs for each image of each unit, and most images have one
 * such word or none.
 */
static void advance_by(struct bmm_image *image, const struct bmm_image *steps,
		       uint64_t n)
{
	uint32_t left = steps->stepping;
	unsigned int w;

	for (; left; left &= left - 1) {
		w = (unsigned int)__builtin_ctz(left);
		image->word[w] += n * steps->step[w];
	}
}

/* Advances an image by @n records (or units); @n may be negative. */
static void advance(struct bmm_image *image, uint64_t n)
{
	advance_by(image, image, n);
}

/* Sets the step of each word of @image to the difference from @next. */
static void set_steps(struct bmm_image *image, const struct bmm_image *next)
{
	uint64_t word[BMM_RECORD_WORDS];

	bmm_memcpy(word, image->word, sizeof(word));
	bmm_image_init(image, word, next->word, image->size);
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
 * The first record of a unit from which all, to the unit's end, are as
 * predicted; @last is the image of the last one. Goes backwards: the cache
 * still holds what the kernel wrote last, but not a whole 1 GiB unit.
 */
static size_t run_begin(const void *base, const struct bmm_geometry *g,
			size_t unit, const struct bmm_image *last)
{
	struct bmm_image now = *last;
	size_t r = g->records;

	if (last->size == 64 && !last->stepping)
		return r - count_same(record_at(base, g, unit, r), last, r);
	for (; r && same_record(record_at(base, g, unit, r - 1), &now); r--)
		advance(&now, -1ULL);
	return r;
}

/* Sets layout->tail (except its words) and layout->heads from one unit. */
static int find_tail(struct bmm_layout *layout, const void *base, size_t unit)
{
	const struct bmm_geometry *g = &layout->geometry;
	struct bmm_image now, last;
	size_t first;

	/* The step inside a unit; with two records, any step would fit. */
	take(&now, base, g, unit, g->records - 1);
	if (g->records >= 3) {
		last = now;
		take(&now, base, g, unit, g->records - 2);
		set_steps(&now, &last);
		advance(&now, 1);
	}
	layout->tail = now;
	/* the last one matches its own image */
	first = run_begin(base, g, unit, &now);
	if (first > BMM_LAYOUT_HEADS) {
		layout->differs = unit * g->records + first - 1;
		return -BMM_EUNLIKE;
	}
	layout->heads = (unsigned int)first;
	return 0;
}

/*
 * Sets the images of the heads and of the first tail from units 0 and 1, and
 * the words of layout->tail.
 */
static void take_images(struct bmm_layout *layout, const void *base)
{
	const struct bmm_geometry *g = &layout->geometry;
	struct bmm_image next;
	unsigned int r;

	for (r = 0; r <= layout->heads; r++) {
		take(&layout->image[r], base, g, 0, r);
		take(&next, base, g, 1, r);
		set_steps(&layout->image[r], &next);
	}
	layout->unit = 0;
	bmm_memcpy(layout->tail.word, layout->image[layout->heads].word,
		   g->record);
}

/* Advances the images from their current unit to another. */
static void move_to(struct bmm_layout *layout, uint64_t unit)
{
	struct bmm_image *last = layout->image + layout->heads, *image;
	uint64_t n = unit - layout->unit;

	for (image = layout->image; image <= last; image++)
		advance(image, n);
	advance_by(&layout->tail, last, n);
	layout->unit = unit;
}

/*
 * Whether a unit is as predicted. If its tail is known to repeat, checks only
 * up to the first tail.
 */
static int verify_unit(struct bmm_layout *l, const void *base, size_t unit,
		       bool repeats)
{
	const struct bmm_geometry *g = &l->geometry;
	struct bmm_image last;
	size_t r;

	move_to(l, unit);
	if (!repeats) {
		bmm_image_at(&last, &l->tail, g->records - 1 - l->heads);
		r = run_begin(base, g, unit, &last);
	} else {
		r = l->heads;
		r += !same_record(record_at(base, g, unit, r), &l->tail);
	}
	if (r <= l->heads)
		for (r = l->heads;
		     r && same_record(record_at(base, g, unit, r - 1),
				      &l->image[r - 1]);
		     r--)
			;
	if (!r)
		return 0;
	l->differs = unit * g->records + r - 1;
	return -BMM_EUNLIKE;
}

/* Units of one record without gaps form one run. */
static int verify_run(struct bmm_layout *layout, const void *base, size_t units)
{
	struct bmm_geometry run = layout->geometry;
	struct bmm_image last;
	size_t r;

	run.records = units;
	bmm_image_at(&last, &layout->image[0], units - 1);
	r = run_begin(base, &run, 0, &last);
	if (!r)
		return 0;
	layout->differs = r - 1;
	return -BMM_EUNLIKE;
}

/* The last unit's tail is known to repeat: it was found there. */
static int verify(struct bmm_layout *layout, const void *base, size_t units)
{
	const struct bmm_geometry *g = &layout->geometry;
	size_t u = units - 1;
	int err;

	if (is_run(g))
		return verify_run(layout, base, units);
	err = verify_unit(layout, base, u, true);
	while (!err && u--)
		err = verify_unit(layout, base, u, false);
	return err;
}

/*
 * Two units cannot disprove a step. Accept only steps that are zero or equal to
 * the distance of the units: pointers into the unit itself.
 */
static int explained(struct bmm_layout *l)
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
	int err;

	if (units < 2 || (uintptr_t)base % 8 || !valid(geometry))
		return -BMM_EINVAL;
	layout->geometry = *geometry;
	err = find_tail(layout, base, units - 1);
	if (err)
		return err;
	take_images(layout, base);
	err = verify(layout, base, units);
	if (!err && units < BMM_LEARN_UNITS)
		err = explained(layout);
	return err;
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
	return verify_unit(layout, base, unit, false);
}

/* Stamps the unit that the images are for. */
static void stamp_unit(const struct bmm_layout *l,
		       const struct bmm_backend *backend, char *p)
{
	const struct bmm_geometry *g = &l->geometry;
	unsigned int r;

	for (r = 0; r < l->heads; r++, p += g->record)
		backend->stamp(p, &l->image[r], 1);
	backend->stamp(p, &l->tail, g->records - r);
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
	char *p = (char *)base + first * g->stride;
	uint64_t end = first + units;

	if (is_run(g)) {
		move_to(layout, first);
		backend->stamp(p, &layout->image[0], units);
		return;
	}
	for (; first < end; first++, p += g->stride) {
		move_to(layout, first);
		stamp_unit(layout, backend, p);
	}
}
