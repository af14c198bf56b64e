// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_livepatch: a live patch of folio_zero_user(), a function that bulkmm
 * hooks: the replacement clears page by page too, and counts its calls.
 */
#include <linux/livepatch.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/stringify.h>

#include "../../../module/compat/compat.h"

#ifdef CONFIG_LIVEPATCH

static atomic_t livepatch_calls;
module_param_named(calls, livepatch_calls.counter, int, 0444);

static void livepatch_clear(BMM_CLEAR_PARAMS)
{
	struct folio *of = BMM_CLEAR_FOLIO;
	unsigned long i;

	for (i = 0; i < folio_nr_pages(of); i++) {
		clear_page(folio_address(of) + i * PAGE_SIZE);
		cond_resched();
	}
	atomic_inc(&livepatch_calls);
}

static struct klp_func livepatch_functions[] = {
	{
		.old_name = __stringify(BMM_ZERO_USER),
		.new_func = livepatch_clear,
	},
	{}
};

static struct klp_object livepatch_objects[] = {
	{ .funcs = livepatch_functions }, /* no name: vmlinux */
	{}
};

static struct klp_patch livepatch = {
	.mod = THIS_MODULE,
	.objs = livepatch_objects,
};

static int __init livepatch_init(void)
{
	return klp_enable_patch(&livepatch);
}

MODULE_INFO(livepatch, "Y");

#else

static int __init livepatch_init(void)
{
	return -EOPNOTSUPP;
}

#endif

/* The module can be unloaded once the patch is disabled. */
static void __exit livepatch_exit(void)
{
}

module_init(livepatch_init);
module_exit(livepatch_exit);

MODULE_DESCRIPTION("bulkmm lab: a live patch of a function that bulkmm hooks");
MODULE_LICENSE("GPL");
