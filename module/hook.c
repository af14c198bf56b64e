// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching and detaching hooks.
 *
 * The patch site at the function's entry becomes a direct call of our
 * trampoline (register_ftrace_direct()). The trampoline either returns into the
 * original body or goes to the handler in its place (trampoline.S). The
 * handler reaches the original by a static call to the instruction after the
 * patch site, which bypasses the hook. IBT and BTI allow that: on x86 a static
 * call is a direct call, on arm64 it leads to a return stub, whose target needs
 * no landing pad.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "compat/compat.h"
#include "faults.h"
#include "hook.h"
#include "symbols.h"
#ifdef CONFIG_ARM64
#include "arm64/site.h"
#else
#include "x86/site.h"
#endif

#define BMM_PATH_HOOK(path, name, ...)                        \
	unsigned long bmm_##name##_threshold = BMM_HOOK_PASS; \
	DEFINE_STATIC_CALL_NULL(bmm_##name##_original,        \
				*(bmm_##name##_fn *)NULL);
#include "paths.def"

/*
 * Freeing a filter leaves its pointers in the ops (6.1, 6.12): zero an ops
 * before it is used again, or the next filter is copied from freed memory. 7.3
 * warns about an ops that is still flagged as enabled, as ftrace_startup()
 * leaves it if ftrace shuts down meanwhile: that filter is never freed.
 */
static void hook_reset_ops(struct ftrace_ops *ops)
{
	if (!(ops->flags & FTRACE_OPS_FL_ENABLED))
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
 * Whether ftrace still works: ftrace_kill() shuts it down for good when it
 * finds something wrong, and patch sites then stay as they are.
 */
static int hook_check_ftrace(unsigned long site)
{
	struct ftrace_ops ops = {};
	int err;

	if (bmm_fault("ask"))
		return -ENOMEM;
	err = ftrace_set_filter_ip(&ops, site + MCOUNT_INSN_SIZE - 1, 0, 0);
	hook_reset_ops(&ops);
	return err;
}

/* The same, when a lack of memory is no answer. */
static bool hook_ftrace_dead(unsigned long site)
{
	int err;

	while ((err = hook_check_ftrace(site)) == -ENOMEM)
		ssleep(1);
	return err;
}

/*
 * Whether kernel.ftrace_enabled is set. What is registered while it is 0 (6.1,
 * 6.12; 7.3's ftrace_enable_sysctl() refuses that) is not patched, and when
 * ftrace later takes it away it finds its records wrong and shuts down.
 */
static bool hook_ftrace_enabled(void)
{
	long address = bmm_symbol_data("ftrace_enabled");

	return IS_ERR_VALUE(address) || READ_ONCE(*(int *)address);
}

/*
 * Waits until no CPU uses an ops that ftrace has refused after it was in the
 * list for a moment (ftrace_startup(), the same in 6.1 to 7.3): it returns
 * without waiting. __ftrace_ops_list_func() walks the list with preemption
 * disabled, which synchronize_rcu() waits for. The rude grace period is for
 * functions that are traced where RCU does not watch; where there are none, it
 * is a no-op (7.3, kernel/rcu/tasks.h). Whom the walk sent to the trampoline
 * may be preempted there: that synchronize_rcu_tasks() waits for.
 */
static void hook_wait_walkers(void)
{
	synchronize_rcu_tasks_rude();
	synchronize_rcu();
	synchronize_rcu_tasks();
}

/* Checks that calls reach the hook: else it would only look attached. */
static int hook_confirm(struct bmm_hook *hook)
{
	int err = hook_check_ftrace(hook->site);

	if (!err && !bmm_site_patched(hook->site))
		err = -EIO;
	if (err || !hook->probe)
		return err;
	WRITE_ONCE(*hook->threshold, 0);
	err = hook->probe();
	/* switched off meanwhile, without the lock: nothing was tried */
	if (err && READ_ONCE(*hook->threshold))
		err = -ENODEV;
	WRITE_ONCE(*hook->threshold, BMM_HOOK_PASS);
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
	if (!hook_ftrace_enabled()) {
		err = -ENXIO;
		goto reset;
	}
	/* The original must be callable before the first call arrives. */
	hook->site = site;
	__static_call_update(hook->original, hook->original_tramp,
			     (void *)bmm_site_way_back(site, hook->trampoline));
	if (!try_module_get(THIS_MODULE)) {
		err = -ESTALE;
		goto reset;
	}
	/* As a live patch has it: nobody sets kernel.ftrace_enabled to 0. */
	hook->ops.flags |= FTRACE_OPS_FL_PERMANENT;
	/* Aligned: 7.3 takes bit 0 as a request to jump (ftrace_jmp_set()). */
	err = register_ftrace_direct(&hook->ops, trampoline);
	if (err)
		goto put;
	bmm_ops_permanent(&hook->ops);
	return 0;
put:
	hook_wait_walkers();
	if (err != -ENODEV) /* ftrace_startup(): it may have patched the site */
		module_put(THIS_MODULE);
reset:
	hook_reset_ops(&hook->ops);
	return err == -ENODEV ? -ESHUTDOWN : err;
}

/*
 * Attaches a hook that is not; its threshold takes effect at once. If it
 * attached but calls do not reach it, it is left detaching, and can be attached
 * again when that is over. Callers serialise. Returns 0 or a negative errno for
 * bmm_hook_strerror().
 */
int bmm_hook_attach(struct bmm_hook *hook)
{
	long entry;
	int err;

	if (bmm_hook_attached(hook))
		return 0;
	if (hook->state == BMM_DETACHING) /* ftrace has its ops */
		return hook->err;
	entry = bmm_function_entry(hook->symbol, hook->prototype);
	err = IS_ERR_VALUE(entry) ? entry : hook_register(hook, entry);
	if (err) {
		WRITE_ONCE(hook->err, err);
		return err;
	}
	WRITE_ONCE(hook->state, BMM_ATTACHED);
	err = hook_confirm(hook);
	if (err)
		bmm_hook_detach(hook, err);
	return err;
}

/*
 * Begins to detach a hook whose threshold is BMM_HOOK_PASS by now, for a reason
 * (-ENODEV: the path is off). From here on, nobody but its work item touches it
 * until it is detached. Callers serialise.
 */
void bmm_hook_detach(struct bmm_hook *hook, int err)
{
	if (hook->state != BMM_ATTACHED)
		return;
	WRITE_ONCE(hook->err, err);
	WRITE_ONCE(hook->state, BMM_DETACHING);
	queue_work(system_dfl_wq, &hook->detach);
}

/*
 * ftrace may still use what it did not release: clear none of it, and keep the
 * hook's reference to the module.
 */
static void hook_set_stuck(struct bmm_hook *hook)
{
	static bool logged;

	if (!xchg(&logged, true))
		pr_crit("%s cannot be unhooked, for ftrace has shut down: the module stays for good, calls go to the kernel's function while the path is off\n",
			hook->symbol);
	WRITE_ONCE(hook->state, BMM_STUCK);
}

/*
 * Takes a detaching hook off its function. ftrace waits as it does for a live
 * patch (ftrace_shutdown(), 6.1 to 7.3), for several grace periods: when this
 * returns, no CPU uses the ops, and no task is in ftrace's own trampoline, in
 * ours, or before the first instruction of the handler that can sleep. (6.1
 * leaves synchronize_rcu_tasks() out on a kernel that does not preempt: there a
 * task leaves them before its CPU schedules, which the rude one waits for.)
 * Calls that went further go on.
 */
void bmm_hook_unregister(struct bmm_hook *hook)
{
	unsigned long trampoline = (unsigned long)hook->trampoline;

	/*
	 * Unregistering corrupts the ops before it fails: ask before. It
	 * succeeds although ftrace shut down before it came to the site
	 * (ftrace_replace_code(), 6.1 to 7.3), which calls on: ask after.
	 */
	if (hook_ftrace_dead(hook->site) ||
	    unregister_ftrace_direct(&hook->ops, trampoline, false) ||
	    hook_ftrace_dead(hook->site))
		hook_set_stuck(hook);
}

/*
 * Finishes detaching an unregistered hook that nobody can be inside of, unless
 * ftrace kept it. May drop the last reference to the module, but its exit waits
 * for the caller.
 */
void bmm_hook_release(struct bmm_hook *hook)
{
	if (hook->state != BMM_DETACHING)
		return;
	hook_reset_ops(&hook->ops);
	WRITE_ONCE(hook->state, BMM_DETACHED);
	module_put(THIS_MODULE);
}

/* 0 while calls reach the hook, else a negative errno. */
int bmm_hook_status(const struct bmm_hook *hook)
{
	switch (READ_ONCE(hook->state)) {
	case BMM_DETACHED:
		return READ_ONCE(hook->err);
	case BMM_DETACHING:
		return -EINPROGRESS;
	default:
		return 0;
	}
}

static const struct {
	int err;
	const char *text;
} hook_errors[] = {
	{ 0, "attached" },
	{ -EINPROGRESS, "detaching: the last calls have not left" },
	{ -ESHUTDOWN, "ftrace has shut down" },
	{ -EBUSY, "another live patch or direct trampoline has the function" },
	{ -ENOENT, "the kernel has no such function (renamed or inlined)" },
	{ -EADDRNOTAVAIL, "the kernel has several functions of this name" },
	{ -ENODEV, "not attached" },
	{ -ECANCELED,
	  "the module is inert (its parameter inert, bulkmm.inert at boot)" },
	{ -ESTALE, "the module is being unloaded" },
	{ -EFAULT, "the kernel's symbol of this name is no function" },
	{ -EINVAL, "the kernel does not allow tracing the function" },
	{ -ENODATA, "the kernel has it inlined where it matters" },
	{ -EREMCHG, "a call that no kernel has that was tried" },
	{ -ENOLINK,
	  "a call that this kernel lacks, unlike those that were tried" },
	{ -EPROTOTYPE, "the kernel's function has another prototype" },
	{ -EUCLEAN, "the kernel's struct has another layout" },
	{ -EPROTO,
	  "the kernel has no BTF to check prototypes and layouts against" },
	{ -ENOMEM, "no memory to try it out" },
	{ -ENXIO,
	  "kernel.ftrace_enabled is 0: set it to 1, then switch on again" },
	{ -EIO, "the patch site did not change" },
	{ -EOPNOTSUPP, "the kernel's configuration rules it out" },
	{ -EALREADY, "the kernel does the path's work itself" },
};

/* A bmm_hook_status() in words. */
const char *bmm_hook_strerror(int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hook_errors); i++)
		if (hook_errors[i].err == err)
			return hook_errors[i].text;
	return "ftrace refused";
}

/* The state of a hook in words. */
const char *bmm_hook_text(const struct bmm_hook *hook)
{
	if (READ_ONCE(hook->state) == BMM_STUCK)
		return "attached for good: ftrace has shut down";
	return bmm_hook_strerror(bmm_hook_status(hook));
}
