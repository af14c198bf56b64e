/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CALLERS_H
#define BMM_CALLERS_H

long bmm_callers(const char *symbol);

#endif
