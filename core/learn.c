// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Learn, verify, predict.
 *
 * Nothing here knows what a struct page holds. Word w of record r of unit u is
 * predicted to be
 *
 *	image(r)[w] + u * unit_step(r)[w] + group(u, r) * group_step[w]
 *
 * where the records from the first repeating one on share one image that may
 * also step by a constant inside the unit (the page->virtual of some 32-bit
 * layouts; zero on every kernel with a virtual memmap), and group_step is what
 * the caller says, mostly nothing (the section number in page->flags, where
 * there is no virtual memmap). The first two units give images and steps; all
 * learned units must match what they predict.
 */
#include "learn.h"

static const bmm_word *record_at(const void *base, const struct bmm_geometry *g,
				 size_t unit, size_t record)
{
	return (const bmm_word *)((const char *)base + unit * g->stride +
				  record * g->record);
}

/* Place of a record in the array, as if there were no gaps. */
static uint64_t place_of(const struct bmm_geometry *g, uint64_t unit,
			 size_t record)
{
	return unit * (g->stride / g->record) + record;
}

/* What the group of a place adds to the word that follows groups. */
static uint64_t group_adds(const struct bmm_groups *groups, uint64_t place)
{
	return (groups->phase + place) / groups->records * groups->step;
}

/* An image of what stands there, without what its group has added. */
static void take(struct bmm_image *image, const void *base,
		 const struct bmm_geometry *g, size_t unit, size_t record)
{
	const struct bmm_groups *groups = &g->groups;

	bmm_image_init(image, record_at(base, g, unit, record), NULL, g->record);
	if (groups->records)
		image->word[groups->word] -= group_adds(groups,
							place_of(g, unit,
								 record));
}

static bool same_record(const bmm_word *rec, const struct bmm_image *image)
{
	const uint64_t *word = image->word;
	uint64_t differ = 0;
	size_t w;

	/* Whole gigabyte units are read here: no loop for the hot size. */
	if (image->size == 64)
		return !((rec[0] ^ word[0]) | (rec[1] ^ word[1]) |
			 (rec[2] ^ word[2]) | (rec[3] ^ word[3]) |
			 (rec[4] ^ word[4]) | (rec[5] ^ word[5]) |
			 (rec[6] ^ word[6]) | (rec[7] ^ word[7]));
	for (w = 0; w < image->size / 8; w++)
		differ |= rec[w] ^ word[w];
	return !differ;
}

/* Whether the record of that place is @image, plus what its group adds. */
static bool as_predicted(const void *base, const struct bmm_geometry *g,
			 size_t unit, size_t record,
			 const struct bmm_image *image)
{
	const bmm_word *rec = record_at(base, g, unit, record);
	struct bmm_image now;

	if (!g->groups.records)
		return same_record(rec, image);
	now = *image;
	now.word[g->groups.word] += group_adds(&g->groups,
					       place_of(g, unit, record));
	return same_record(rec, &now);
}

/*
 * Moves an image by @n times the steps of another. Only the words that step:
 * this is done for each image of each unit, and most have one such word or
 * none.
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

/* Moves an image @n records (or units) on, or back for a negative @n. */
static void advance(struct bmm_image *image, uint64_t n)
{
	advance_by(image, image, n);
}

/* Sets the step of each word of @image to what is missing to @next. */
static void set_steps(struct bmm_image *image, const struct bmm_image *next)
{
	uint64_t word[BMM_RECORD_WORDS];

	bmm_memcpy(word, image->word, sizeof(word));
	bmm_image_init(image, word, next->word, image->size);
}

/* Sets layout->tail (but for its words) and layout->heads from unit 0. */
static int find_tail(struct bmm_layout *layout, const void *base)
{
	const struct bmm_geometry *g = &layout->geometry;
	size_t first = g->records - 1;
	struct bmm_image now, last;

	/* The step inside a unit; two records alone would fit any line. */
	take(&now, base, g, 0, first);
	if (g->records >= 3) {
		last = now;
		take(&now, base, g, 0, first - 1);
		set_steps(&now, &last);
		advance(&now, 1);
	}
	layout->tail = now;

	for (; first; first--) {
		advance(&now, -1ULL);
		if (!as_predicted(base, g, 0, first - 1, &now))
			break;
	}
	if (first > BMM_LAYOUT_HEADS) {
		layout->differs = first - 1;
		return -BMM_EUNLIKE;
	}
	layout->heads = (unsigned int)first;
	return 0;
}

/*
 * Sets the images of the heads and of the first tail from units 0 and 1, and
 * with it the words of layout->tail.
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

/* Moves the images from the unit that they are for to another. */
static void move_to(struct bmm_layout *layout, uint64_t unit)
{
	struct bmm_image *last = layout->image + layout->heads, *image;
	uint64_t n = unit - layout->unit;

	for (image = layout->image; image <= last; image++)
		advance(image, n);
	advance_by(&layout->tail, last, n);
	layout->unit = unit;
}

static int verify_unit(struct bmm_layout *l, const void *base, size_t unit)
{
	const struct bmm_geometry *g = &l->geometry;
	struct bmm_image tail;
	size_t r;
	bool same = true;

	move_to(l, unit);
	for (r = 0; r < l->heads && same; r++)
		same = as_predicted(base, g, unit, r, &l->image[r]);
	for (tail = l->tail; r < g->records && same; r++, advance(&tail, 1))
		same = as_predicted(base, g, unit, r, &tail);
	if (same)
		return 0;
	l->differs = unit * g->records + r - 1;
	return -BMM_EUNLIKE;
}

/* Unit 0 is what the images were taken from: find_tail() has read it all. */
static int verify(struct bmm_layout *layout, const void *base, size_t units)
{
	size_t u;
	int err = 0;

	for (u = 1; u < units && !err; u++)
		err = verify_unit(layout, base, u);
	return err;
}

static bool valid(const struct bmm_geometry *g)
{
	const struct bmm_groups *groups = &g->groups;

	if (g->record < BMM_RECORD_MIN || g->record > BMM_RECORD_MAX ||
	    g->record % 8 || !g->records || g->stride % 8 ||
	    g->stride / g->records < g->record)
		return false;
	return !groups->records ||
	       (groups->phase < groups->records &&
		groups->word < g->record / 8 && !(g->stride % g->record));
}

/**
 * bmm_learn() - learn the layout of an array from its first units, and verify
 * @layout:   result; about 3 KB, so not for a kernel stack
 * @base:     first record of unit 0, 8-byte aligned
 * @geometry: how units lie in memory
 * @units:    units that are there to learn from, at least BMM_LEARN_UNITS
 *
 * Only reads @base. Every byte of all @units is compared with its prediction.
 *
 * Return: 0; -BMM_EINVAL for a geometry out of range; -BMM_EUNLIKE if the
 * units do not follow one layout (@layout->differs says where).
 */
int bmm_learn(struct bmm_layout *layout, const void *base,
	      const struct bmm_geometry *geometry, size_t units)
{
	int err;

	if (units < BMM_LEARN_UNITS || (uintptr_t)base % 8 || !valid(geometry))
		return -BMM_EINVAL;
	layout->geometry = *geometry;
	err = find_tail(layout, base);
	if (err)
		return err;
	take_images(layout, base);
	return verify(layout, base, units);
}

/* Records that are left in the group of a place, itself included. */
static uint64_t left_in_group(const struct bmm_groups *groups, uint64_t place)
{
	return groups->records - (groups->phase + place) % groups->records;
}

/* Stamps group by group, from an image as it would be in the first group. */
static void stamp_groups(const struct bmm_groups *groups,
			 const struct bmm_backend *backend, char *p,
			 const struct bmm_image *image, uint64_t place,
			 size_t count)
{
	struct bmm_image now;
	uint64_t done, n;

	for (done = 0; done < count; done += n) {
		n = left_in_group(groups, place + done);
		if (n > count - done)
			n = count - done;
		bmm_image_at(&now, image, done);
		now.word[groups->word] += group_adds(groups, place + done);
		backend->stamp(p + done * image->size, &now, (size_t)n);
	}
}

/* Stamps @count records from @record on of the unit the images are for. */
static void stamp_run(const struct bmm_layout *l,
		      const struct bmm_backend *backend, char *p,
		      const struct bmm_image *image, size_t record, size_t count)
{
	const struct bmm_geometry *g = &l->geometry;

	if (!g->groups.records)
		backend->stamp(p, image, count);
	else
		stamp_groups(&g->groups, backend, p, image,
			     place_of(g, l->unit, record), count);
}

/* The unit that the images are for. */
static void stamp_unit(const struct bmm_layout *l,
		       const struct bmm_backend *backend, char *p)
{
	const struct bmm_geometry *g = &l->geometry;
	unsigned int r;

	for (r = 0; r < l->heads; r++, p += g->record)
		stamp_run(l, backend, p, &l->image[r], r, 1);
	stamp_run(l, backend, p, &l->tail, r, g->records - r);
}

/**
 * bmm_layout_stamp() - write units as learned
 * @layout:  from a bmm_learn() that returned 0; its images move to the units
 *           that are written, so it is for one caller at a time
 * @backend: which stores to use; the caller drains with the same one
 * @base:    first record of unit 0 (the array, not where to start)
 * @first:   first unit to write
 * @units:   how many
 *
 * Each record is written once, whole, and what lies between the records of a
 * unit and the next unit is not touched. Order of stores and ordering as
 * bmm_stamp().
 */
void bmm_layout_stamp(struct bmm_layout *layout,
		      const struct bmm_backend *backend, void *base,
		      uint64_t first, size_t units)
{
	const struct bmm_geometry *g = &layout->geometry;
	char *p = (char *)base + first * g->stride;
	uint64_t end = first + units;

	/* Units of one record without gaps are one run. */
	if (g->records == 1 && g->stride == g->record) {
		move_to(layout, first);
		stamp_run(layout, backend, p, &layout->image[0], 0, units);
		return;
	}
	for (; first < end; first++, p += g->stride) {
		move_to(layout, first);
		stamp_unit(layout, backend, p);
	}
}
