// SPDX-License-Identifier: GPL-2.0-only
/* Addresses of functions that the kernel does not export. */
#include <linux/kprobes.h>

#include "faults.h"
#include "symbols.h"

/**
 * bmm_symbol_entry() - where a function starts, behind its landing pad
 * @symbol: name of a function, unique in the kernel
 *
 * A kprobe is placed and taken away again. Its address is that of the first
 * instruction behind an ENDBR, if there is one: on x86 that is the ftrace
 * patch site, and just as good a target for a direct call.
 *
 * Return: the address, or a negative errno (-ENOENT: no such function;
 * -EADDRNOTAVAIL: more than one; -EINVAL: kprobes may not touch it).
 */
long bmm_symbol_entry(const char *symbol)
{
	struct kprobe probe = { .symbol_name = symbol };
	int err;

	if (bmm_fault_symbol(symbol))
		return -ENOENT;
	err = register_kprobe(&probe);
	if (err)
		return err;
	unregister_kprobe(&probe);
	return (long)probe.addr;
}
