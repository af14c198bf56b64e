// SPDX-License-Identifier: GPL-2.0-only
/* bmm_symbol_entry(), compiled once more for this module. */
#include "../symbols.c"
