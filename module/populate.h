/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_POPULATE_H
#define BMM_POPULATE_H

#include <linux/types.h>

bool bmm_populating(void);

#endif
