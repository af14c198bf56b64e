/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero.h - hugetlb pages that are known to be zero */
#ifndef BMM_PREZERO_H
#define BMM_PREZERO_H

#include <linux/mm_types.h>

#include "path.h"

/* Counters of the path. BMM_OWN is zero.h's: bytes that were zeroed. */
enum bmm_prezero_counter {
	BMM_PREZERO_ZEROED = BMM_OWN + 1, /* pages that became known */
	BMM_PREZERO_FORGOTTEN,		  /* pages that ceased to be, unused */
};

bool bmm_prezero_serves(struct folio *folio);

#endif
