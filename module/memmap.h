/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_MEMMAP_H
#define BMM_MEMMAP_H

#include "path.h"

extern struct bmm_path bmm_memmap;

#endif
