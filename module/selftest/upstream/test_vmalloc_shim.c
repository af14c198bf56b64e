// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/test_vmalloc.c asks for an alignment, which only __vmalloc_node_noprof()
 * takes; the kernel exports it to this one test, if it is configured. Here the
 * test finds a function of that name in its own module, which calls the
 * kernel's.
 */
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "../../symbols.c"

DEFINE_STATIC_CALL_NULL(vmalloc_node, __vmalloc_node_noprof);

static DEFINE_MUTEX(lock);
static long entry;

/* The test's own init function knows nothing of us: the first call looks. */
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
