// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all paths share: attaching, switching, accounting, and leaving without a
 * trace.
 *
 * A path that is off has no hook: its functions are as the kernel built them.
 * Switched off, it serves nothing from that moment on, even if others hold the
 * lock to switch another path; a work item of the path takes the lock, and one
 * of each hook detaches it and waits until the last call has left the module's
 * text, which nothing interrupts. The task that switches waits for them, but
 * not for ever, and a signal ends its wait.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/module.h>

#include "callers.h"
#include "compat/compat.h"
#include "faults.h"
#include "path_internal.h"

/*
 * For a machine that does not come up with the module: whatever the other
 * parameters say, it looks up no symbol and patches nothing.
 */
static bool inert;
module_param(inert, bool, 0444);
MODULE_PARM_DESC(
	inert,
	"inert: load, but hook no function, ever (default: N); at boot: bulkmm.inert=1");

/* Nobody can switch a path until all of them are initialised. */
static bool started;

/* One that is not initialised yet, or has gone, is off and has no hook. */
struct bmm_path *const bmm_paths[BMM_PATHS] = {
#define BMM_PATH(path, ...) &bmm_##path##_path,
#include "paths.def"
};

/* Whether another path that is on needs the hooks of this one. */
static bool path_is_needed(const struct bmm_path *path)
{
	const struct bmm_path *other;

	bmm_for_each_path(other)
		if (other->needs_hooks_of == path && READ_ONCE(other->mode))
			return true;
	return false;
}

static void path_set_thresholds(struct bmm_path *path)
{
	struct bmm_hook *hook;
	bool needed = path_is_needed(path), enabled;
	int mode = READ_ONCE(path->mode);

	bmm_for_each_hook(hook, path) {
		enabled = needed || (mode && mode >= hook->first_mode);
		WRITE_ONCE(*hook->threshold,
			   enabled ? hook->on_from : BMM_HOOK_PASS);
	}
	if (path->needs_hooks_of)
		path_set_thresholds(path->needs_hooks_of);
}

#ifdef BMM_ANY_KERNEL
#define ANY_CALLERS true
#else
#define ANY_CALLERS false
#endif

/*
 * Whether a function is called as on a kernel that was tried. BMM_ANY_KERNEL=1
 * takes others, but not for a path that would lose data by a call it misses.
 */
static int path_check_callers(const struct bmm_path *path,
			      const struct bmm_hook *hook,
			      const char **err_subject)
{
	const char *subject = hook->symbol;
	int err = bmm_callers_check(hook->symbol, &subject);

	if ((err == -EREMCHG || err == -ENOLINK) && ANY_CALLERS &&
	    !path->needs_all_hooks) {
		pr_notice("%s: not refused: %s: %s (%d)\n", path->name, subject,
			  bmm_hook_strerror(err), err);
		err = 0;
	}
	if (err)
		*err_subject = subject;
	return err;
}

/*
 * Attaches one hook, unless there is an error already, and logs in one line why
 * not: once, not at each attempt that ends in the same way. @err_subject: what
 * the error is about; NULL: the hook.
 */
static int path_attach_hook(struct bmm_path *path, struct bmm_hook *hook,
			    int err, const char *err_subject)
{
	int before = READ_ONCE(hook->err);

	if (bmm_hook_attached(hook))
		return 0;
	err = err ?: path_check_callers(path, hook, &err_subject);
	WRITE_ONCE(hook->err_subject, err_subject ?: hook->symbol);
	if (err)
		WRITE_ONCE(hook->err, err);
	else
		err = bmm_hook_attach(hook);
	if (err && (err != before || hook == path->hooks))
		pr_warn("%s: %s: %s: %s (%d)\n", path->name,
			path->needs_all_hooks || hook == path->hooks ? "off" :
								       "in part",
			hook->err_subject, bmm_hook_strerror(err), err);
	return err;
}

/*
 * Prepares and attaches what the path needs of another. Who calls its hooks is
 * checked first: that is a reason of this path's own.
 */
static int path_attach_needed(const struct bmm_path *path,
			      const char **err_subject)
{
	struct bmm_path *lender = path->needs_hooks_of;
	struct bmm_hook *hook;
	int err;

	if (!lender)
		return 0;
	bmm_for_each_hook(hook, lender) {
		err = path_check_callers(path, hook, err_subject) ?:
			      bmm_path_prepare(lender, err_subject);
		if (err)
			return err;
		*err_subject = hook->symbol;
		WRITE_ONCE(hook->err_subject, hook->symbol);
		err = bmm_hook_attach(hook);
		if (err)
			return err;
	}
	return 0;
}

/* Begins to detach all hooks that only this path needs, if it is off. */
static void path_detach(struct bmm_path *path)
{
	struct bmm_hook *hook;

	if (path->mode || path_is_needed(path))
		return;
	bmm_for_each_hook(hook, path)
		bmm_hook_detach(hook, -ENODEV);
	if (path->needs_hooks_of)
		path_detach(path->needs_hooks_of);
}

/* 0 if all hooks are attached that the path cannot do without, or why not. */
static int path_check_hooks(const struct bmm_path *path)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path) {
		if (!bmm_hook_attached(hook))
			return hook->err;
		if (!path->needs_all_hooks)
			break;
	}
	return 0;
}

static int path_attach(struct bmm_path *path)
{
	const char *err_subject = NULL;
	struct bmm_hook *hook;
	int err = inert ? -ECANCELED : bmm_path_prepare(path, &err_subject);

	err = err ?: path_attach_needed(path, &err_subject);
	bmm_for_each_hook(hook, path) {
		path_attach_hook(path, hook, err, err ? err_subject : NULL);
		if (!bmm_hook_attached(path->hooks))
			break;
	}
	err = path_check_hooks(path);
	if (err)
		path_detach(path);
	return err;
}

/* From here on the original serves, whoever holds the lock. */
static void path_bypass(struct bmm_path *path)
{
	WRITE_ONCE(path->mode, BMM_OFF);
	path_set_thresholds(path);
}

/* Begins to detach; a hook that stays attached passes every call on. */
static void path_disable(struct bmm_path *path)
{
	if (path->on_switch)
		path->on_switch(false);
	path_bypass(path);
	path_detach(path);
}

/* Switches a path off for a task that may no longer wait for the lock. */
static void path_disable_work(struct work_struct *work)
{
	struct bmm_path *path = container_of(work, struct bmm_path, disable);

	scoped_guard(mutex, &bmm_path_mutex) {
		/* else an earlier run did it, and the path may be on again */
		if (smp_load_acquire(&path->disable_due)) {
			path_disable(path);
			/* comes after its hooks have begun to detach */
			smp_store_release(&path->disable_due, false);
		}
	}
	wake_up_all(&bmm_path_settled);
}

/*
 * Calls may reach a stuck hook, or not: ftrace may have shut down just after it
 * took the hook off its function. A path that needs every call stays off then.
 */
static int path_enable(struct bmm_path *path, int mode)
{
	int err = bmm_path_has_hook(path, BMM_DETACHED) ? path_attach(path) : 0;
	int before = path->mode;

	if (!err && path->needs_all_hooks && bmm_path_has_hook(path, BMM_STUCK))
		err = -ESHUTDOWN;
	if (err)
		return err;
	WRITE_ONCE(path->mode, mode);
	path_set_thresholds(path);
	if (path->on_switch && !before)
		path->on_switch(true);
	return 0;
}

static int path_switch_on(struct bmm_path *path, int mode)
{
	int err = bmm_path_lock(path);

	if (err)
		return err;
	err = path_enable(path, mode);
	bmm_callers_done();
	bmm_prototype_done();
	bmm_fault_hold();
	mutex_unlock(&bmm_path_mutex);
	return err;
}

/*
 * The original serves at once, unless somebody is switching the same path on,
 * who then has the last word until the path's work item gets the lock. It does
 * so even if this task is interrupted. A path that must see all calls until it
 * has forgotten what it knows goes on seeing them, and its mode and thresholds
 * change under the lock only.
 */
static int path_switch_off(struct bmm_path *path)
{
	struct bmm_path *other;

	bmm_for_each_path(other)
		if (bmm_path_matches(other, path)) {
			if (other->stop)
				other->stop();
			else
				path_bypass(other);
			/* comes after what was stored for the path */
			smp_store_release(&other->disable_due, true);
			queue_work(system_dfl_wq, &other->disable);
		}
	return bmm_path_wait_off(path);
}

/**
 * bmm_path_set_mode() - switch a path at run time
 * @path: the path; NULL: all, which are switched off and wait together
 * @mode: for requests from now on; those in progress finish in the mode they
 *        began in
 *
 * Switching on tries again to attach hooks that could not be attached earlier
 * (-EBUSY, for example). Switched off, the path passes calls on at once, and
 * detaching goes on behind the caller, who waits: when this has succeeded, no
 * call is inside any more.
 *
 * Return: 0; -EAGAIN while the module is loading; the negative errno of
 * attaching the first hook, with the mode unchanged; -EBUSY if a hook can never
 * be detached, the path being off all the same; -EINPROGRESS on a timeout,
 * -EINTR or -ERESTARTSYS on a signal, in the wait of on for an earlier switch
 * (the mode is unchanged then) or in the one after off.
 */
int bmm_path_set_mode(struct bmm_path *path, int mode)
{
	if (!READ_ONCE(started))
		return -EAGAIN;
	return mode ? path_switch_on(path, mode) : path_switch_off(path);
}

/* The path that a sysfs directory belongs to, or NULL. */
struct bmm_path *bmm_path_find(const struct kobject *kobj)
{
	struct bmm_path *path;

	bmm_for_each_path(path)
		if (READ_ONCE(path->kobj) == kobj)
			return path;
	return NULL;
}

int bmm_path_init(struct bmm_path *path)
{
	struct bmm_hook *hook;

	if (!bmm_fault_alloc())
		path->counters = alloc_percpu(struct bmm_counters);
	if (!path->counters)
		return -ENOMEM;
	bmm_for_each_hook(hook, path) {
		hook->err_subject = hook->symbol;
		hook->err = inert ? -ECANCELED : -ENODEV;
		hook->path = path;
		INIT_WORK(&hook->detach, bmm_path_detach_work);
	}
	INIT_WORK(&path->disable, path_disable_work);
	path_set_thresholds(path);
	path->waits_for = "a worker";
	return 0;
}

/*
 * Switches all paths to their modes: the last step of loading, after which
 * nothing can fail, as a function that has been hooked may be impossible to
 * unhook. A hook that does not attach is no error: the path is off, or makes do
 * without it; the log and sysfs say why.
 */
void bmm_path_start(const int modes[])
{
	size_t i;

	guard(mutex)(&bmm_path_mutex);
	if (inert)
		pr_notice(
			"inert: no function is hooked until the module is loaded without it\n");
	for (i = 0; !inert && i < BMM_PATHS; i++)
		if (modes[i])
			path_enable(bmm_paths[i], modes[i]);
	bmm_callers_done();
	bmm_prototype_done();
	WRITE_ONCE(started, true);
}

/*
 * The sum of a counter over all CPUs. A call may enter on one CPU and leave on
 * another: the in-flight count of one may be negative; the sum is right once no
 * new call can arrive.
 */
s64 bmm_path_sum(const struct bmm_path *path, unsigned int counter)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(path->counters, cpu)->n[counter]);
	return sum;
}

/*
 * Hooks hold references, so all are detached when the module is unloaded; but
 * rmmod --force does not check. Better a task that never ends than calls into
 * text that is gone.
 */
static void path_force_off(struct bmm_path *path)
{
	struct bmm_hook *hook;

	flush_work(&path->disable);
	for (;;) {
		scoped_guard(mutex, &bmm_path_mutex)
			path_disable(path);
		bmm_for_each_hook(hook, path)
			flush_work(&hook->detach);
		if (!bmm_path_has_hook(path, BMM_ATTACHED) &&
		    !bmm_path_has_hook(path, BMM_STUCK))
			break;
		ssleep(1);
	}
}

/* Frees a path that nobody can switch any more, if it was initialised. */
void bmm_path_exit(struct bmm_path *path)
{
	if (!path->counters)
		return;
	path_force_off(path);
	free_percpu(path->counters);
}
