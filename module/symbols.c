// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses of functions that the kernel does not export.
 *
 * Looks in the kernel's own symbol table, which does not contain modules: a
 * module's function is never found, whatever its name. The function that
 * searches the table is not exported either. A kprobe gives its address: one
 * that register_kprobe() refuses, because it is inside an instruction, but only
 * after it has looked the name up (kernel/kprobes.c, 6.1 to 7.3). So nothing
 * is registered, and nothing patched.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/static_call.h>

#include "faults.h"
#include "symbols.h"

DEFINE_STATIC_CALL_NULL(bmm_symbol_match, kallsyms_on_each_match_symbol);

#define MATCH "kallsyms_on_each_match_symbol"

#define INSIDE 1 /* offset: the first instruction is longer, whatever it is */

static bool match_known;

static long symbol_by_kprobe(const char *symbol)
{
	struct kprobe probe = {
		.symbol_name = symbol,
		.offset = INSIDE,
		.flags = KPROBE_FLAG_DISABLED,
	};
	int err = register_kprobe(&probe);

	if (WARN_ON_ONCE(!err)) {
		unregister_kprobe(&probe);
		return -EFAULT;
	}
	return probe.addr ? (long)probe.addr - INSIDE : err;
}

struct matches {
	unsigned long first;
	unsigned int nr;
};

static int symbol_count(void *data, unsigned long address)
{
	struct matches *matches = data;

	if (!matches->nr++)
		matches->first = address;
	return 0;
}

static long symbol_unique(const char *symbol)
{
	struct matches matches = {};

	static_call(bmm_symbol_match)(symbol_count, symbol, &matches);
	if (!matches.nr)
		return -ENOENT;
	return matches.nr == 1 ? (long)matches.first : -EADDRNOTAVAIL;
}

/* A kprobe takes the first symbol of a name: check that this one is unique. */
static int symbol_prepare(void)
{
	long address;

	if (match_known)
		return 0;
	address = symbol_by_kprobe(MATCH);
	if (IS_ERR_VALUE(address))
		return address;
	static_call_update(bmm_symbol_match, (void *)address);
	address = symbol_unique(MATCH);
	if (IS_ERR_VALUE(address))
		return address;
	match_known = true;
	return 0;
}

static bool symbol_in_text(unsigned long address)
{
	long begin = symbol_unique("_stext");
	long end = symbol_unique("_etext");

	return !IS_ERR_VALUE(begin) && !IS_ERR_VALUE(end) &&
	       address >= (unsigned long)begin && address < (unsigned long)end;
}

/*
 * The address of a kernel symbol of any kind (KALLSYMS_ALL), or a negative
 * errno. Callers serialise.
 */
long bmm_symbol_data(const char *symbol)
{
	symbol = bmm_fault_symbol(symbol);
	if (!symbol)
		return -ENOENT;
	return symbol_prepare() ?: symbol_unique(symbol);
}

/*
 * The address of a kernel function's first instruction, which may be a landing
 * pad, or a negative errno: -ENOENT: no such symbol; -EADDRNOTAVAIL: more than
 * one; -EFAULT: not a function. Callers serialise.
 */
long bmm_symbol_entry(const char *symbol)
{
	long entry = symbol_prepare();

	if (entry)
		return entry;
	entry = symbol_unique(symbol);
	if (!IS_ERR_VALUE(entry) && !symbol_in_text(entry))
		return -EFAULT;
	return entry;
}
