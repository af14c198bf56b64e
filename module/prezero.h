/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero.h - shared by the hooks of path prezero and its filler */
#ifndef BMM_PREZERO_H
#define BMM_PREZERO_H

#include <linux/mm_types.h>

#include "clear_common.h"

enum {
	BMM_PREZERO_ZEROED = BMM_ZERO_STREAMED +
		1,	       /* pages that became known */
	BMM_PREZERO_FORGOTTEN, /* pages that ceased to be, unused */
};

bool bmm_filler_is_returning(const struct folio *folio);
bool bmm_filler_page_returned(void);
int bmm_filler_probe_hook(void);
int bmm_filler_run(unsigned long kib, int nid, unsigned long pages,
		   unsigned long floor);

#endif
