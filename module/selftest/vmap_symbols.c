// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unexported functions of the kernel, reached by static calls: a call through a
 * pointer would trap where IBT has sealed their landing pads. The call lands on
 * the patch site, so hooks see it like any other.
 */
#include "vmap.h"

#include "../symbols.c"

DEFINE_STATIC_CALL_NULL(get_vm_area, get_vm_area);
DEFINE_STATIC_CALL_NULL(find_vm_area, find_vm_area);
DEFINE_STATIC_CALL_NULL(vmap_pages_range_noflush, *(bmm_pages_range_fn *)NULL);
BMM_TEST_CALLS(DEFINE_STATIC_CALL_NULL)
DEFINE_STATIC_CALL_NULL(vunmap_range, *(bmm_vunmap_range_fn *)NULL);
DEFINE_STATIC_CALL_NULL(set_memory_ro, *(bmm_set_memory_fn *)NULL);
DEFINE_STATIC_CALL_NULL(set_memory_rw, *(bmm_set_memory_fn *)NULL);

#define RESOLVE(name, ...)                                                      \
	do {                                                                    \
		long entry = bmm_symbol_entry(#name);                           \
                                                                                \
		if (IS_ERR_VALUE(entry)) {                                      \
			pr_err("bulkmm_vmaptest: no %s (%ld)\n", #name, entry); \
			return entry;                                           \
		}                                                               \
		static_call_update(name, (void *)entry);                        \
	} while (0)

/* Return: 0, or a negative errno and a line in the log. */
int bmm_vmap_symbols(void)
{
	RESOLVE(get_vm_area);
	RESOLVE(find_vm_area);
	RESOLVE(vmap_pages_range_noflush);
	BMM_TEST_CALLS(RESOLVE)
	RESOLVE(vunmap_range);
	RESOLVE(set_memory_ro);
	RESOLVE(set_memory_rw);
	return 0;
}
