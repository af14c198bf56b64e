// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching and detaching hooks.
 *
 * The kernel's ftrace site at the function's entry is turned into a direct
 * call of a trampoline of ours (register_ftrace_direct()). The trampoline
 * either returns into the original body or drops that return address and
 * jumps to the handler. The handler reaches the original by a static call to
 * the instruction behind the site, so that the hook itself does not stand in
 * the way. Nor does IBT or BTI: on x86 a static call is a direct one, on arm64
 * it leads to a way back that no landing pad is asked of.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>

#include "hook.h"
#include "symbols.h"
#ifdef CONFIG_ARM64
#include "arm64/site.h"
#else
#include "x86/site.h"
#endif

/*
 * Freeing a filter leaves its pointers in the ops (6.12): an ops that is used
 * again must start from nothing, or the next filter is copied from freed
 * memory.
 */
static void hook_reset_ops(struct ftrace_ops *ops)
{
	ftrace_free_filter(ops);
	memset(ops, 0, sizeof(*ops));
}

/*
 * Where from the function's entry on ftrace has its site: it knows. It takes
 * any address inside of one, and the entry for whatever follows; the last byte
 * tells the candidates apart. Returns the site or a negative errno.
 */
static long hook_set_filter(struct bmm_hook *hook, unsigned long entry)
{
	unsigned long site;
	int err = -EINVAL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bmm_sites); i++) {
		site = entry + bmm_sites[i];
		err = ftrace_set_filter_ip(&hook->ops,
					   site + MCOUNT_INSN_SIZE - 1, 0, 0);
		if (!err)
			return site;
	}
	return err;
}

/* A hook that calls do not reach is detached: it would only look attached. */
static int hook_confirm(struct bmm_hook *hook, unsigned long site)
{
	int err = 0;

	hook->state = 0;
	if (!bmm_site_patched(site))
		err = -ENXIO;
	else if (hook->try)
		err = hook->try();
	if (err)
		bmm_hook_detach(hook);
	return err;
}

/**
 * bmm_hook_attach() - attach the hook
 * @hook: the hook, not attached; its threshold decides what happens at once
 *
 * Context: process; callers serialise.
 * Return: 0, or a negative errno, also left in @hook->state, which
 * bmm_hook_why() explains. Nothing is changed on failure.
 */
int bmm_hook_attach(struct bmm_hook *hook)
{
	unsigned long trampoline = (unsigned long)hook->trampoline;
	long entry = bmm_symbol_entry(hook->symbol), site;
	int err;

	if (IS_ERR_VALUE(entry)) {
		err = entry;
		goto out;
	}
	site = hook_set_filter(hook, entry);
	if (IS_ERR_VALUE(site)) {
		err = site;
		goto reset;
	}

	/* The original must be reachable before the first call arrives. */
	hook->set_original(bmm_site_way_back(site, hook->trampoline));
	err = register_ftrace_direct(&hook->ops, trampoline);
	if (err)
		goto reset;
	err = hook_confirm(hook, site);
	goto out;
reset:
	hook_reset_ops(&hook->ops);
out:
	hook->state = err;
	return err;
}

/**
 * bmm_hook_detach() - detach the hook
 * @hook: the hook; a no-op if it is not attached
 *
 * Calls that are under way go on: the caller waits for them (bmm_path_exit())
 * before the module's text may go.
 */
void bmm_hook_detach(struct bmm_hook *hook)
{
	unsigned long trampoline = (unsigned long)hook->trampoline;

	if (hook->state)
		return;
	if (unregister_ftrace_direct(&hook->ops, trampoline, false))
		pr_crit("%s cannot be unhooked: ftrace has shut down\n",
			hook->symbol);
	hook_reset_ops(&hook->ops);
	hook->state = -ENODEV;
}

/**
 * bmm_hook_why() - the state of a hook in words
 * @state: as struct bmm_hook has it
 *
 * Return: a phrase for the log and for sysfs.
 */
const char *bmm_hook_why(int state)
{
	switch (state) {
	case 0:
		return "attached";
	case -EBUSY:
		return "another live patch or direct trampoline has the function";
	case -ENOENT:
		return "the kernel has no such function (renamed or inlined)";
	case -EADDRNOTAVAIL:
		return "the kernel has several functions of this name";
	case -ENODEV:
		return "not attached";
	case -ECANCELED:
		return "the module is inert (its parameter inert, bulkmm.inert at boot)";
	case -EFAULT:
		return "the kernel's symbol of this name is no function";
	case -EINVAL:
		return "the kernel does not allow to trace the function";
	case -ENODATA:
		return "the kernel has it inlined where it matters";
	case -ENOMEM:
		return "no memory to try it out";
	case -ENXIO:
		return "the patch site did not change (is kernel.ftrace_enabled 0?)";
	case -EOPNOTSUPP:
		return "the kernel's configuration rules it out";
	default:
		return "ftrace refused";
	}
}
