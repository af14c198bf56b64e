/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * learn.h - take the layout of an array of records from its first units
 *
 * An array of struct pages is a sequence of equal units: one page each, or
 * one compound page each (a head, a few tails that carry compound data, and
 * one tail that repeats). What the kernel wrote in the first units predicts
 * all the others; see learn.c.
 */
#ifndef BMM_LEARN_H
#define BMM_LEARN_H

#include "bmm.h"

#define BMM_EUNLIKE 61 /* learned records do not follow one layout */

#define BMM_LAYOUT_HEADS 8U /* records before the repeating one */
#define BMM_LEARN_UNITS	 3U /* two give the steps, the third proves them */

/**
 * struct bmm_groups - a word that changes by a constant at group boundaries
 * @records: places for records in a group, counted through the gaps of units
 *           too (a section has as many as it has page frames); 0 if there are
 *           no groups
 * @phase:   place of the array's first record in its group, below @records
 * @word:    index of the word
 * @step:    what is added to it from group to group, modulo 2^64
 *
 * What else steps in the same word is found by learning. The step from group
 * to group cannot be, because the units learned from may lie in one group:
 * the caller gives it, and it is verified as far as they reach.
 */
struct bmm_groups {
	size_t records;
	size_t phase;
	unsigned int word;
	uint64_t step;
};

/**
 * struct bmm_geometry - how units lie in memory
 * @record:  bytes of a record (as struct bmm_image)
 * @records: records that exist in a unit, at least 1
 * @stride:  bytes from unit to unit, a multiple of 8, at least
 *           @record * @records; with groups, a multiple of @record
 * @groups:  all zero where no word depends on its group
 */
struct bmm_geometry {
	size_t record;
	size_t records;
	size_t stride;
	struct bmm_groups groups;
};

/**
 * struct bmm_layout - what bmm_learn() found
 * @geometry: as given
 * @heads:    records at the start of a unit that differ from the one after
 *            them, at most BMM_LAYOUT_HEADS
 * @unit:     the unit that the images are for
 * @image:    images of those records and, last, of the first repeating one,
 *            as they would be in the first group; their step is that from
 *            unit to unit
 * @tail:     that last one again; its step is that from record to record
 *            inside a unit
 * @differs:  after -BMM_EUNLIKE: index of a record not as predicted, the last
 *            of its unit (unit * @geometry.records + record)
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
