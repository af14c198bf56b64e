// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses of functions that the kernel does not export.
 *
 * Looks in the kernel's own symbol table, which does not contain modules: a
 * module's function is never found, whatever its name. The function that
 * searches the table is not exported either. A kprobe gives its address; it is
 * registered disabled, so nothing is patched and nothing can fail when it is
 * unregistered.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/static_call.h>

#include "symbols.h"

DEFINE_STATIC_CALL_NULL(bmm_symbol_match, kallsyms_on_each_match_symbol);

#define MATCH "kallsyms_on_each_match_symbol"

/* Not on the stack: the kernel links it into a list. */
static struct kprobe match_probe;
static bool match_known;

static long symbol_by_kprobe(const char *symbol)
{
	int err;

	match_probe = (struct kprobe){
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};
	err = register_kprobe(&match_probe);
	if (err)
		return err;
	unregister_kprobe(&match_probe);
	if (match_probe.addr)
		return (long)match_probe.addr;
	/* A cleared address means that the kprobe is still linked. */
	__module_get(THIS_MODULE);
	pr_crit("a kprobe cannot be taken away: the module stays for good\n");
	return -EBUSY;
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

/**
 * bmm_symbol_data() - find a kernel symbol that is not a function
 * @symbol: its name
 *
 * Context: process; callers serialise.
 * Return: the address, or a negative errno.
 */
long bmm_symbol_data(const char *symbol)
{
	return symbol_prepare() ?: symbol_unique(symbol);
}

/**
 * bmm_symbol_entry() - find the start of a kernel function
 * @symbol: its name
 *
 * Context: process; callers serialise.
 * Return: the address of its first instruction, which may be a landing pad; or
 * a negative errno (-ENOENT: no such symbol; -EADDRNOTAVAIL: more than one;
 * -EFAULT: not a function).
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
