/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CLEAR_GAP_H
#define BMM_CLEAR_GAP_H

#include "path.h"

size_t bmm_gap_bytes(enum bmm_op op, unsigned long us);
void bmm_gap_learn(enum bmm_op op, size_t bytes, u64 ns);
void bmm_gap_account(unsigned int order, u64 ns);
ssize_t bmm_gap_show(struct bmm_path *path, unsigned int index, char *buf);

#endif
