// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/test_vmalloc.c needs __vmalloc_node_noprof(), which alone takes an
 * alignment; the kernel exports it only where this test is configured. The
 * function of the same name here, in the test's module, calls the kernel's.
 */
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "../../../../module/symbols.c"

DEFINE_STATIC_CALL_NULL(vmalloc_node, __vmalloc_node_noprof);

static DEFINE_MUTEX(lock);
static long entry;

/* The test has its own init function, so the first call looks the symbol up. */
static bool found(void)
{
	guard(mutex)(&lock);
	if (!entry) {
		entry = bmm_symbol_entry("__vmalloc_node_noprof");
		if (!IS_ERR_VALUE(entry))
			static_call_update(vmalloc_node, (void *)entry);
	}
	return !IS_ERR_VALUE(entry);
}

void *__vmalloc_node_noprof(unsigned long size, unsigned long align, gfp_t gfp,
			    int node, const void *caller)
{
	if (!found())
		return NULL;
	return static_call(vmalloc_node)(size, align, gfp, node, caller);
}
