// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_namesake: a module whose functions have names that bulkmm looks up, as
 * any vendor's module may. None of them may ever be hooked. Nothing calls them:
 * the compiler then has no reason to rename any.
 */
#include <linux/mm.h>
#include <linux/module.h>

/* Inlined in 6.12: no kernel function has this name there. */
static __used void clear_highpages_kasan_tagged(struct page *page, int nr)
{
	barrier();
}

/* Every kernel has this one. */
static __used int vmap_range_noflush(unsigned long addr, unsigned long end)
{
	barrier();
	return 0;
}

/* No kernel has this one. */
static __used void bulkmm_namesake_only(void)
{
	barrier();
}

static int __init namesake_init(void)
{
	return 0;
}

static void __exit namesake_exit(void)
{
}

module_init(namesake_init);
module_exit(namesake_exit);

MODULE_DESCRIPTION("bulkmm lab: functions by names that bulkmm looks for");
MODULE_LICENSE("GPL");
