// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching and detaching hooks.
 *
 * The patch site at the function's entry becomes a direct call of our
 * trampoline (register_ftrace_direct()). The trampoline either returns into the
 * original body or drops that return address and jumps to the handler. The
 * handler reaches the original by a static call to the instruction after the
 * patch site, which bypasses the hook. IBT and BTI allow that: on x86 a static
 * call is a direct call, on arm64 it leads to a return stub, whose target needs
 * no landing pad.
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
 * Freeing a filter leaves its pointers in the ops (6.12): zero an ops before it
 * is used again, or the next filter is copied from freed memory.
 */
static void hook_reset_ops(struct ftrace_ops *ops)
{
	ftrace_free_filter(ops);
	memset(ops, 0, sizeof(*ops));
}

/*
 * Finds the patch site after the function's entry by asking ftrace. It accepts
 * any address inside a patch site, and the entry for whatever follows; the last
 * byte tells the candidates apart. Returns the patch site or a negative errno.
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
 * Whether ftrace still works. It shuts down for good when it finds something
 * wrong, and then calls stay as they are. Like everything here that changes a
 * filter, this waits for anybody else who is changing ftrace.
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
 * PERMANENT makes the kernel refuse kernel.ftrace_enabled = 0 while attached,
 * as for a live patch: 6.12 would silently detach us (later kernels refuse
 * anyway). Set after registering, which overwrites the flags in 6.12.
 */
static void hook_own_flags(struct ftrace_ops *ops)
{
	ops->flags |= FTRACE_OPS_FL_PERMANENT;
}

/* Checks that calls reach the hook: else it would only look attached. */
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
	/* The original must be callable before the first call arrives. */
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
	/* It may have been in ftrace's list, with somebody walking it. */
	synchronize_rcu_tasks_rude();
	module_put(THIS_MODULE);
reset:
	hook_reset_ops(&hook->ops);
	return err == -ENODEV ? -ESHUTDOWN : err;
}

/**
 * bmm_hook_attach() - attach the hook
 * @hook: the hook, detached; its threshold takes effect at once
 *
 * If it attached but calls do not reach it, it is left detaching.
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
 * ftrace may still use what it did not release: clear none of it, and keep the
 * hook's reference to the module.
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
 * bmm_hook_hide() - hide the hook from walks of ftrace's list
 * @hook: the hook; its threshold is BMM_HOOK_PASS by now
 *
 * If others trace the function too, ftrace calls each ops in its list. What is
 * unregistered must not be called or read any more: after this and a rude grace
 * period of RCU tasks it is not. Hooks that are detached together share that
 * wait. (ftrace itself waits after each, holding its lock, and too late:
 * unregistering a direct trampoline corrupts the ops at once.)
 *
 * Return: true if it is attached, so that a wait is needed.
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
	/* ftrace need not wait: bmm_hook_detached() comes after a wait */
	hook->ops.flags &= ~FTRACE_OPS_FL_DYNAMIC;
	return unregister_ftrace_direct(&hook->ops,
					(unsigned long)hook->trampoline, false);
}

/**
 * bmm_hook_detach() - detach the hook from ftrace
 * @hook: the hook, hidden; a no-op if it is detached or detaching
 *
 * Calls in progress go on. The caller waits for them, and for a grace period of
 * RCU tasks, and then calls bmm_hook_detached().
 *
 * Context: process; callers serialise.
 * Return: 0; -EBUSY if it stays attached for good; or another negative errno
 * with the hook attached as before.
 */
int bmm_hook_detach(struct bmm_hook *hook)
{
	int err;

	if (!bmm_hook_attached(hook))
		return 0;
	if (hook->life == BMM_FOR_GOOD)
		return -EBUSY;
	/* Unregistering would corrupt the ops before it fails. */
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
 * bmm_hook_leaving() - start to wait for the last calls of a hook
 * @hook: the hook
 *
 * Return: true if there is anything to wait for. A caller that waits and then
 * calls bmm_hook_detached() has waited for this hook, and for none that is
 * detached meanwhile.
 */
bool bmm_hook_leaving(struct bmm_hook *hook)
{
	if (hook->life != BMM_DETACHING)
		return false;
	WRITE_ONCE(hook->life, BMM_LEAVING);
	return true;
}

/**
 * bmm_hook_detached() - finish detaching a hook that nobody can be inside of
 * @hook: the hook; a no-op if it is not leaving
 *
 * May drop the last reference to the module, but its exit waits for the caller.
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
 * Return: 0 while calls reach it, else a negative errno.
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
 * @state: from bmm_hook_state()
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
