/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * learn.h - learn the layout of an array of records from its first units
 *
 * An array of struct pages is a sequence of equal units: one page each, or
 * one compound page each (a head, a few tails that carry compound data, and
 * one tail that repeats). What the kernel wrote in the first units predicts
 * all the others; see learn.c.
 */
#ifndef BMM_LEARN_H
#define BMM_LEARN_H

#include "bmm.h"

#define BMM_EUNLIKE 61 /* the records do not follow one layout */

#define BMM_LAYOUT_HEADS 8U /* records before the first repeating one */
#define BMM_LEARN_UNITS	 3U /* two give the steps, the third proves them */

/**
 * struct bmm_geometry - how units lie in memory
 * @record:  bytes of a record (as struct bmm_image)
 * @records: records that exist in a unit, at least 1
 * @stride:  bytes from unit to unit, a multiple of 8, at least
 *           @record * @records
 */
struct bmm_geometry {
	size_t record;
	size_t records;
	size_t stride;
};

/**
 * struct bmm_layout - what bmm_learn() found
 * @geometry: as given
 * @heads:    records at the start of a unit that differ from the repeating one,
 *            at most BMM_LAYOUT_HEADS
 * @unit:     the unit that the images are for
 * @image:    images of the heads and, last, of the repeating record; they step
 *            from unit to unit
 * @tail:     the repeating record of that unit, without a step
 * @differs:  after -BMM_EUNLIKE: index (unit * @geometry.records + record) of a
 *            record that is not as predicted, the last such in its unit
 */
struct bmm_layout {
	struct bmm_geometry geometry;
	unsigned int heads;
	uint64_t unit;
	struct bmm_image image[BMM_LAYOUT_HEADS + 1];
	struct bmm_image tail;
	size_t differs;
};

int bmm_learn(struct bmm_layout *layout, const void *base,
	      const struct bmm_geometry *geometry, size_t units);
int bmm_layout_verify(struct bmm_layout *layout, const void *base, size_t unit);
void bmm_layout_stamp(struct bmm_layout *layout,
		      const struct bmm_backend *backend, void *base,
		      uint64_t first, size_t units);

#endif
