// SPDX-License-Identifier: GPL-2.0-only
/* bmm_symbol_entry(), compiled into this module too. */
#include "../symbols.c"
