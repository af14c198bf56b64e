// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_namesake: a module whose functions have names that bulkmm looks up, as
 * any vendor's module may. None of them may ever be hooked.
 */
#include <linux/mm.h>
#include <linux/module.h>

/* The compiler renames functions whose arguments it drops or knows. */
#define NAMED noinline __used

/* Inlined in 6.12: no kernel function has this name there. */
static NAMED void clear_highpages_kasan_tagged(struct page *page, int nr)
{
	barrier();
}

/* Every kernel has this one. */
static NAMED int vmap_range_noflush(unsigned long addr, unsigned long end)
{
	barrier();
	return 0;
}

/* No kernel has this one. */
static NAMED void bulkmm_namesake_only(void)
{
	barrier();
}

static int __init namesake_init(void)
{
	clear_highpages_kasan_tagged(NULL, 0);
	bulkmm_namesake_only();
	return vmap_range_noflush(0, 0);
}

static void __exit namesake_exit(void)
{
	clear_highpages_kasan_tagged(NULL, 1);
	bulkmm_namesake_only();
	vmap_range_noflush(0, 1);
}

module_init(namesake_init);
module_exit(namesake_exit);

MODULE_DESCRIPTION("bulkmm lab: functions by names that bulkmm looks for");
MODULE_LICENSE("GPL");
