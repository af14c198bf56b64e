/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CLEAR_GAP_H
#define BMM_CLEAR_GAP_H

#include "path.h"

/**
 * struct bmm_gaps - the units of one folio
 * @longest: time of the longest, ns
 * @units:   how many there were
 * @over:    how many took longer than what is promised
 */
struct bmm_gaps {
	u64 longest;
	unsigned int units;
	unsigned int over;
};

void bmm_gap_note(struct bmm_gaps *gaps, u64 ns, u64 most);
void bmm_gap_account(unsigned int order, const struct bmm_gaps *gaps);
ssize_t bmm_gap_show(struct bmm_path *path, unsigned int index, char *buf);
ssize_t bmm_gap_store(struct bmm_path *path, unsigned int index,
		      const char *buf, size_t len);

#endif
