/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_MEMMAP_VERIFY_H
#define BMM_MEMMAP_VERIFY_H

#include "memmap_stamp.h"

extern struct kobj_attribute bmm_memmap_verify_file;

bool bmm_memmap_mistrusted(void);
bool bmm_memmap_verify_due(const struct bringup *b);
u64 *bmm_memmap_sums(const struct bringup *b);
bool bmm_memmap_differs(struct bringup *b, const u64 *sums);

#endif
