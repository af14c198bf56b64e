// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs bulkmm_lab/poison: a page that the kernel cannot read, as if its
 * memory were broken: it is not in the direct map. The page fault ends where a
 * machine check would (ex_handler_default(), for EX_TYPE_DEFAULT_MCE_SAFE, in
 * arch/x86/mm/extable.c, 6.1 to 7.3). "PFN" breaks it, "none" mends it.
 */
#include <linux/mm.h>

#include "../../../module/symbols.h"
#include "lab.h"

typedef int set_memory_fn(unsigned long addr, int numpages);

static set_memory_fn *make_absent, *make_present;
static unsigned long poisoned; /* address of the page; 0: none */

static int poison_begin(void)
{
	long absent = bmm_symbol_entry("set_memory_np");
	long present = bmm_symbol_entry("set_memory_p"); /* since 6.8 */

	if (IS_ERR_VALUE(absent) || IS_ERR_VALUE(present))
		return -ENOENT;
	make_absent = (set_memory_fn *)absent;
	make_present = (set_memory_fn *)present;
	return 0;
}

static void poison_mend(void)
{
	if (poisoned)
		make_present(poisoned, 1);
	poisoned = 0;
}

static int poison_write(char *text)
{
	unsigned long pfn, addr;
	int err;

	if (!strcmp(text, "none")) {
		poison_mend();
		return 0;
	}
	err = kstrtoul(text, 0, &pfn);
	if (err || !pfn_valid(pfn) || poisoned)
		return -EINVAL;
	addr = (unsigned long)page_address(pfn_to_page(pfn));
	err = make_absent(addr, 1);
	if (!err)
		poisoned = addr;
	return err;
}

BMM_LAB_PART(poison, NULL, poison_begin, poison_mend,
	     { "poison", .write = poison_write });
