/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_COPY_LINES_H
#define BMM_COPY_LINES_H

#include <linux/types.h>

/* What copies. None but the first leaves the destination in the cache. */
enum bmm_copy_by {
	BMM_COPY_BY_KERNEL, /* copy_mc_to_kernel(): REP MOVSB */
	BMM_COPY_BY_MOVNTI,
	BMM_COPY_BY_MOVNTI_T0,
	BMM_COPY_BY_MOVNTI_NTA,
	BMM_COPY_BYS
};

unsigned long bmm_copy_lines(enum bmm_copy_by by, void *dst, const void *src,
			     size_t len);
void bmm_copy_measure(enum bmm_copy_by *fastest,
		      enum bmm_copy_by *fastest_streaming);

#endif
