/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * calibrate.h - measure the candidates of an operation, and select one
 *
 * A function, not a process: it works on a buffer of its own, so that nobody's
 * memory and nobody's calls are part of it. What it selects is the caller's to
 * keep; nothing is measured again unless the caller does.
 */
#ifndef BMM_CALIBRATE_H
#define BMM_CALIBRATE_H

#include "bmm.h"
#include "text.h"

/*
 * Bytes of the buffer: a destination and a source, each many times what a core
 * has under way at once. It is made cold by evicting it, so it need not exceed
 * any cache.
 */
#define BMM_CALIBRATE_EXTENT ((size_t)256 << 10)
#define BMM_CALIBRATE_BYTES  (2 * BMM_CALIBRATE_EXTENT + 4096)

/**
 * struct bmm_calls - the calls that a backend is selected for
 * @op:     the operation
 * @len:    bytes of a call, up to BMM_CALIBRATE_EXTENT
 * @hot:    how often what it touches is in a cache, against @cold
 * @cold:   how often it is in none; one of the two at least once
 * @skewed: source and destination of a copy differ in their offset within a
 *          cache line
 * @longer: NULL, or what was measured of longer calls that are else alike:
 *          for how these fare where they are in no cache, once
 */
struct bmm_calls {
	enum bmm_op op;
	size_t len;
	unsigned int hot;
	unsigned int cold;
	bool skewed;
	const struct bmm_calibration *longer;
};

/**
 * struct bmm_calibration - its result
 * @selected: the backend; NULL before bmm_calibrate()
 * @rate:     MB/s of each candidate, as numbered by bmm_candidates(), where it
 *            was slowest; 0: nothing was measured
 * @cold:     of each, what it costs in no cache, in 1024ths of the least
 */
struct bmm_calibration {
	const struct bmm_backend *selected;
	uint32_t rate[BMM_CANDIDATES];
	uint64_t cold[BMM_CANDIDATES];
};

typedef uint64_t bmm_sample_fn(void *where, unsigned int k);

unsigned int bmm_candidates(const struct bmm_calls *calls,
			    const struct bmm_backend **list);
void bmm_measure_costs(bmm_sample_fn *sample, void *where, unsigned int nr,
		       uint64_t *cost);
void bmm_calibrate(const struct bmm_calls *calls, void *buffer,
		   struct bmm_calibration *result);
void bmm_calibration_list(struct bmm_text *text,
			  const struct bmm_calibration *of,
			  const struct bmm_calls *calls,
			  const struct bmm_backend *selected);

#endif
