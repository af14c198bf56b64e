/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CLEAR_H
#define BMM_CLEAR_H

#include "path.h"

struct folio;

extern struct bmm_path bmm_clear_path;

/* Shared with the trampoline (trampolines.S). */
extern unsigned long bmm_clear_threshold;
void bmm_clear_trampoline(void);
void bmm_clear_handler(struct folio *folio, unsigned long addr_hint);

#endif
