// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who calls a function of the kernel.
 *
 * A compiler may inline a function into some of its callers, or have them call
 * a clone: a hook on it then misses them, and its symbol does not tell. The
 * kernel's text does, as a direct call or jump names its target.
 */
#include <linux/kallsyms.h>
#include <linux/sched.h>

#include "callers.h"
#include "faults.h"
#include "symbols.h"
#ifdef CONFIG_ARM64
#include "arm64/call.h"
#else
#include "x86/call.h"
#endif

/* The beginning of the function at @at; 0: none, or the cold part of one. */
static unsigned long function_at(unsigned long at)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned long offset;
	const char *plus;

	sprint_symbol(name, at); /* "name+0x10/0x80" */
	plus = strrchr(name, '+');
	if (!plus || sscanf(plus, "+%lx/", &offset) != 1 ||
	    strstr(name, ".cold"))
		return 0;
	return at - offset;
}

/**
 * bmm_callers() - how many functions call this one
 * @symbol: its name
 *
 * Calls that are patched in at run time are not seen, and a part that the
 * compiler split off a caller counts as one of its own, unless it is cold.
 * Takes some 10 ms. Context: may sleep; callers serialise.
 *
 * Return: how many, or a negative errno of finding the symbol.
 */
long bmm_callers(const char *symbol)
{
	unsigned long last = 0, found = 0, caller;
	long at = bmm_symbol_data("_stext"), end = bmm_symbol_data("_etext");
	long entry = bmm_symbol_entry(symbol);

	if (IS_ERR_VALUE(at) || IS_ERR_VALUE(end) || IS_ERR_VALUE(entry))
		return -ENOENT;
	for (; at + BMM_CALL_SIZE <= end; at += BMM_CALL_STEP) {
		if (!(at % PAGE_SIZE))
			cond_resched();
		if (bmm_call_target(at) != entry)
			continue;
		caller = function_at(at);
		found += caller && caller != last;
		last = caller;
	}
	return found;
}
