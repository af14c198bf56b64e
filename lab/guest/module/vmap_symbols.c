// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unexported functions of the kernel, reached by static calls: a call through a
 * pointer would trap where IBT has sealed their landing pads. The call lands on
 * the patch site, so hooks see it like any other.
 */
#include "vmap.h"

#include "../../../module/symbols.c"

BMM_VMAP_CALLS(DEFINE_STATIC_CALL_NULL)

#define RESOLVE(name, ...)                                              \
	entry = bmm_symbol_entry(#name);                                \
	if (IS_ERR_VALUE(entry)) {                                      \
		pr_err("bulkmm_vmaptest: no %s (%ld)\n", #name, entry); \
		return entry;                                           \
	}                                                               \
	static_call_update(name, (void *)entry)

/* Return: 0, or a negative errno and a line in the log. */
int bmm_vmap_symbols(void)
{
	long entry;

	BMM_VMAP_CALLS(RESOLVE)
	return 0;
}
