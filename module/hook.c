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
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "faults.h"
#include "hook.h"
#include "prototype.h"
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

/*
 * Whether ftrace still does what it is told. It shuts down for good when it
 * finds something wrong, and then the calls stay as they are. As everything
 * here that changes a filter, this waits for whoever else changes ftrace.
 */
static int hook_ask_ftrace(unsigned long site)
{
	static struct ftrace_ops ops;
	int err;

	if (bmm_fault("ask"))
		return -ENOMEM;
	err = ftrace_set_filter_ip(&ops, site + MCOUNT_INSN_SIZE - 1, 0, 0);
	hook_reset_ops(&ops);
	return err;
}

/*
 * PERMANENT has kernel.ftrace_enabled = 0 refused while calls come to us, as
 * with a live patch: it would take our calls away behind our back (6.12, which
 * overwrites the flags when an ops is registered; later kernels refuse it
 * anyway). Registering would not take it.
 */
static void hook_own_flags(struct ftrace_ops *ops)
{
	ops->flags |= FTRACE_OPS_FL_PERMANENT;
}

/* A hook that calls do not reach would only look attached. */
static int hook_confirm(struct bmm_hook *hook)
{
	int err = hook_ask_ftrace(hook->site);

	if (!err && !bmm_site_patched(hook->site))
		err = -ENXIO;
	if (!err && hook->try)
		err = hook->try();
	return err;
}

static int hook_register(struct bmm_hook *hook, unsigned long entry)
{
	unsigned long trampoline = (unsigned long)hook->trampoline;
	long site = hook_set_filter(hook, entry);
	int err;

	if (IS_ERR_VALUE(site)) {
		err = site;
		goto reset;
	}
	/* The original must be reachable before the first call arrives. */
	hook->site = site;
	hook->set_original(bmm_site_way_back(site, hook->trampoline));
	if (!try_module_get(THIS_MODULE)) {
		err = -ESTALE;
		goto reset;
	}
	err = register_ftrace_direct(&hook->ops, trampoline);
	if (err)
		goto put;
	hook_own_flags(&hook->ops);
	return 0;
put:
	/* It may have been in ftrace's list, and somebody at it there. */
	synchronize_rcu_tasks_rude();
	module_put(THIS_MODULE);
reset:
	hook_reset_ops(&hook->ops);
	return err == -ENODEV ? -ESHUTDOWN : err;
}

/**
 * bmm_hook_attach() - attach the hook
 * @hook: the hook, detached; its threshold decides what happens at once
 *
 * A hook that was attached, but that calls do not reach, is left detaching.
 *
 * Context: process; callers serialise.
 * Return: 0, or the negative errno that bmm_hook_says() explains.
 */
int bmm_hook_attach(struct bmm_hook *hook)
{
	long entry = bmm_function_entry(hook->symbol, hook->prototype);
	int err = IS_ERR_VALUE(entry) ? entry : hook_register(hook, entry);

	if (err) {
		WRITE_ONCE(hook->why, err);
		return err;
	}
	WRITE_ONCE(hook->life, BMM_ATTACHED);
	err = hook_confirm(hook);
	if (err) {
		if (bmm_hook_hide(hook))
			synchronize_rcu_tasks_rude();
		bmm_hook_detach(hook);
		WRITE_ONCE(hook->why, err);
	}
	return err;
}

/*
 * What ftrace has not let go it may still use: nothing of it is cleared, and
 * the hook keeps its reference to the module.
 */
static int hook_keep(struct bmm_hook *hook)
{
	static bool said;

	WRITE_ONCE(hook->life, BMM_FOR_GOOD);
	if (!said)
		pr_crit("%s cannot be unhooked, for ftrace has shut down: the module stays for good, calls go to the kernel's function while the path is off\n",
			hook->symbol);
	said = true;
	return -EBUSY;
}

/**
 * bmm_hook_hide() - have whoever walks ftrace's list pass the hook over
 * @hook: the hook; its threshold is BMM_HOOK_PASS by now
 *
 * For a function that others trace as well, ftrace calls each of its list. What
 * is unregistered must not be called, nor looked at, any more: a rude grace
 * period of RCU tasks after this, nobody does. Hooks that are detached together
 * share it. (ftrace itself waits, with its lock held, after each, and too late:
 * unregistering a direct trampoline spoils the ops at once.)
 *
 * Return: whether it is attached, so that there is somebody to wait for.
 */
bool bmm_hook_hide(struct bmm_hook *hook)
{
	if (READ_ONCE(hook->life) != BMM_ATTACHED)
		return false;
	hook->ops.flags |= FTRACE_OPS_FL_STUB;
	return true;
}

static int hook_unregister(struct bmm_hook *hook)
{
	/* ftrace need not wait for what bmm_hook_detached() comes after */
	hook->ops.flags &= ~FTRACE_OPS_FL_DYNAMIC;
	return unregister_ftrace_direct(&hook->ops,
					(unsigned long)hook->trampoline, false);
}

/**
 * bmm_hook_detach() - have ftrace detach the hook
 * @hook: the hook, hidden; a no-op if it is detached or detaching
 *
 * Calls that are under way go on. The caller waits for them, and for all that
 * a grace period of RCU tasks waits for, and then says bmm_hook_detached().
 *
 * Context: process; callers serialise.
 * Return: 0; -EBUSY if it stays attached for good; or another negative errno,
 * and it is attached as before.
 */
int bmm_hook_detach(struct bmm_hook *hook)
{
	int err;

	if (!bmm_hook_attached(hook))
		return 0;
	if (hook->life == BMM_FOR_GOOD)
		return -EBUSY;
	/* Unregistering would spoil the ops before it fails. */
	err = hook_ask_ftrace(hook->site);
	if (!err && hook_unregister(hook))
		err = -ENODEV;
	if (err)
		hook->ops.flags &= ~FTRACE_OPS_FL_STUB;
	if (err == -ENODEV)
		return hook_keep(hook);
	if (err)
		return err;
	WRITE_ONCE(hook->why, -ENODEV);
	WRITE_ONCE(hook->life, BMM_DETACHING);
	return 0;
}

/**
 * bmm_hook_leaving() - begin to wait for the last calls of a hook
 * @hook: the hook
 *
 * Return: whether there is anything to wait for. Who waits and then says
 * bmm_hook_detached() has waited for this hook, and for none that is detached
 * meanwhile.
 */
bool bmm_hook_leaving(struct bmm_hook *hook)
{
	if (hook->life != BMM_DETACHING)
		return false;
	WRITE_ONCE(hook->life, BMM_LEAVING);
	return true;
}

/**
 * bmm_hook_detached() - end the life of a hook that nobody can be inside of
 * @hook: the hook; a no-op if it is not leaving
 *
 * May drop the last reference to the module: its exit waits for the caller.
 */
void bmm_hook_detached(struct bmm_hook *hook)
{
	if (hook->life != BMM_LEAVING)
		return;
	hook_reset_ops(&hook->ops);
	WRITE_ONCE(hook->life, BMM_DETACHED);
	module_put(THIS_MODULE);
}

/**
 * bmm_hook_state() - the state of a hook as a number
 * @hook: the hook
 *
 * Return: 0 while calls come to it, else a negative errno.
 */
int bmm_hook_state(const struct bmm_hook *hook)
{
	switch (READ_ONCE(hook->life)) {
	case BMM_DETACHED:
		return READ_ONCE(hook->why);
	case BMM_DETACHING:
	case BMM_LEAVING:
		return -EINPROGRESS;
	default:
		return 0;
	}
}

/**
 * bmm_hook_says() - the state of a hook in words
 * @hook: the hook
 *
 * Return: a phrase for sysfs.
 */
const char *bmm_hook_says(const struct bmm_hook *hook)
{
	if (READ_ONCE(hook->life) == BMM_FOR_GOOD)
		return "attached for good: ftrace has shut down";
	return bmm_hook_why(bmm_hook_state(hook));
}

/**
 * bmm_hook_why() - a state in words
 * @state: as bmm_hook_state() has it
 *
 * Return: a phrase for the log.
 */
const char *bmm_hook_why(int state)
{
	switch (state) {
	case 0:
		return "attached";
	case -EINPROGRESS:
		return "detaching: the last calls have not left";
	case -ESHUTDOWN:
		return "ftrace has shut down";
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
	case -ESTALE:
		return "the module is being unloaded";
	case -EFAULT:
		return "the kernel's symbol of this name is no function";
	case -EINVAL:
		return "the kernel does not allow to trace the function";
	case -ENODATA:
		return "the kernel has it inlined where it matters";
	case -EPROTOTYPE:
		return "the kernel's function has another prototype";
	case -EPROTO:
		return "the kernel has no BTF to hold the prototype against";
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
