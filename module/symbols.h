/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_SYMBOLS_H
#define BMM_SYMBOLS_H

long bmm_symbol_data(const char *symbol);
long bmm_symbol_entry(const char *symbol);

#endif
