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
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>

#include "compat/compat.h"
#include "faults.h"
#include "path.h"

#define BMM_PATH_CALL(path, name, ...) \
	DEFINE_STATIC_CALL_NULL(bmm_##name, *(bmm_##name##_fn *)NULL);
#include "paths.def"

/* Functions that paths call. */
static const struct {
	const char *path, *symbol, *prototype;
	struct static_call_key *key;
	void *tramp;
} calls[] = {
#define BMM_PATH_CALL(path, name, ...)                        \
	{ #path, bmm_##name##_symbol, bmm_##name##_prototype, \
	  &STATIC_CALL_KEY(bmm_##name), STATIC_CALL_TRAMP_ADDR(bmm_##name) },
#include "paths.def"
};

/* Options that rule a path out, as they are set in this kernel or not. */
static const struct {
	const char *path, *option;
	bool out;
} options[] = {
#define BMM_PATH_WITHOUT(path, option) \
	{ #path, "CONFIG_" #option, IS_BUILTIN(CONFIG_##option) },
#define BMM_PATH_WITH(path, option) \
	{ #path, "CONFIG_" #option, !IS_BUILTIN(CONFIG_##option) },
#include "paths.def"
};

/* How long a task that switches a path waits for the last calls. */
#define PATIENCE_S 30

/*
 * Serialises attaching, and deciding to detach, for all paths. Never held while
 * a hook is detached; attaching waits for others who change ftrace.
 */
static DEFINE_MUTEX(control_lock);
static DECLARE_WAIT_QUEUE_HEAD(settled);

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
struct bmm_path *const bmm_paths[] = {
#define BMM_PATH(path, ...) &bmm_##path##_path,
#include "paths.def"
};

#define for_each_path(path)                          \
	for (struct bmm_path *const *at = bmm_paths; \
	     at < bmm_paths + ARRAY_SIZE(bmm_paths) && ((path) = *at); at++)

/* Whether another path that is on needs the hooks of this one. */
static bool path_lent(const struct bmm_path *path)
{
	const struct bmm_path *other;

	for_each_path(other)
		if (other->with == path && READ_ONCE(other->mode))
			return true;
	return false;
}

static void path_set_thresholds(struct bmm_path *path)
{
	struct bmm_hook *hook;
	bool lent = path_lent(path), on;
	int mode = READ_ONCE(path->mode);

	bmm_for_each_hook(hook, path) {
		on = lent || (mode && mode >= hook->first_mode);
		WRITE_ONCE(*hook->threshold, on ? hook->on_from : BMM_HOOK_PASS);
	}
	if (path->with)
		path_set_thresholds(path->with);
}

static bool path_any(const struct bmm_path *path, enum bmm_hook_life life)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path) {
		if (READ_ONCE(hook->life) == life)
			return true;
	}
	return false;
}

static void path_wait_empty(struct bmm_path *path)
{
	while (bmm_path_sum(path, BMM_INFLIGHT))
		msleep(1);
}

/*
 * Detaches a hook, behind the task that switched the path off. When ftrace has
 * released it (bmm_hook_unregister()), a task may still be (1) in the handler,
 * counted, or (2) between the last instruction that counts it and its return,
 * or in a handler that does not count as it cannot sleep; or that is (3) an
 * interrupt of an idle CPU, which RCU tasks does not wait for. The three waits
 * cover these in order.
 */
static void path_detach_work(struct work_struct *work)
{
	struct bmm_hook *hook = container_of(work, struct bmm_hook, detach);
	struct bmm_path *path = hook->path;

	WRITE_ONCE(path->waits_for, "ftrace");
	bmm_hook_unregister(hook);
	WRITE_ONCE(path->waits_for, "calls that are inside");
	path_wait_empty(path);
	WRITE_ONCE(path->waits_for, "every task to sleep once");
	synchronize_rcu_tasks();
	synchronize_rcu();

	scoped_guard(mutex, &control_lock)
		bmm_hook_release(hook);
	wake_up_all(&settled);
}

/*
 * Returns a path that is still to be detached, or detaching: @path or what it
 * needs, or any if it is NULL. The last path first: what one needs comes before
 * it in paths.def, and begins to detach before its own off_due is cleared.
 */
static struct bmm_path *path_detaching(struct bmm_path *path)
{
	size_t i = ARRAY_SIZE(bmm_paths);
	struct bmm_path *one;

	while (i--) {
		one = bmm_paths[i];
		/* pairs with path_off_work(): no hook is seen as it was before */
		if ((!path || one == path || one == path->with) &&
		    (smp_load_acquire(&one->off_due) ||
		     path_any(one, BMM_DETACHING)))
			return one;
	}
	return NULL;
}

/* Waits until no hook of @path, or of any path, is detaching; returns 0 then. */
static int path_wait_settled(struct bmm_path *path)
{
	unsigned int patience = bmm_fault_patience(PATIENCE_S);
	long left = wait_event_interruptible_timeout(settled,
						     !path_detaching(path),
						     patience * HZ);
	struct bmm_path *late;

	/* Settled counts, even if somebody has switched it again since. */
	if (left)
		return min(left, 0L);
	late = path_detaching(path);
	if (!late)
		return 0;
	pr_notice(
		"%s: still detaching after %u s, waits for %s: it goes on by itself\n",
		late->name, patience,
		READ_ONCE(late->off_due) ? "its turn to be switched" :
					   READ_ONCE(late->waits_for));
	return -EINPROGRESS;
}

/* Takes the lock once no hook of the path is detaching. */
static int path_lock(struct bmm_path *path)
{
	int err;

	for (;;) {
		err = path_wait_settled(path);
		if (!err)
			err = mutex_lock_interruptible(&control_lock);
		if (err || !path_detaching(path))
			return err;
		mutex_unlock(&control_lock);
	}
}

/*
 * Attaches one hook, unless there is an error already, and logs in one line why
 * not: once, not at each attempt that ends in the same way. @at_fault: what the
 * error is about; NULL: the hook.
 */
static int path_attach_hook(struct bmm_path *path, struct bmm_hook *hook,
			    int err, const char *at_fault)
{
	int before = READ_ONCE(hook->err);

	if (bmm_hook_attached(hook))
		return 0;
	WRITE_ONCE(hook->at_fault, at_fault ?: hook->symbol);
	if (err)
		WRITE_ONCE(hook->err, err);
	else
		err = bmm_hook_attach(hook);
	if (err && (err != before || hook == path->hooks))
		pr_warn("%s: %s: %s: %s (%d)\n", path->name,
			path->whole || hook == path->hooks ? "off" : "in part",
			hook->at_fault, bmm_hook_strerror(err), err);
	return err;
}

static int path_configured(const struct bmm_path *path, const char **at_fault)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (!options[i].out || strcmp(options[i].path, path->name))
			continue;
		*at_fault = options[i].option;
		return -EOPNOTSUPP;
	}
	return 0;
}

static int path_find_calls(const struct bmm_path *path, const char **at_fault)
{
	long entry;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (strcmp(calls[i].path, path->name))
			continue;
		*at_fault = calls[i].symbol;
		entry = bmm_function_entry(calls[i].symbol, calls[i].prototype);
		if (IS_ERR_VALUE(entry))
			return entry;
		__static_call_update(calls[i].key, calls[i].tramp,
				     (void *)entry);
	}
	return 0;
}

/* What the path needs besides hooks, and the symbol, option or member at fault. */
static int path_prepare(const struct bmm_path *path, const char **at_fault)
{
	int err = path_configured(path, at_fault);

	err = err ?: bmm_layout_check(path->name, at_fault);
	if (!err && path->prepare) {
		*at_fault = path->prepares;
		err = path->prepare();
	}
	return err ?: path_find_calls(path, at_fault);
}

/* Prepares and attaches what the path needs of another. */
static int path_attach_with(struct bmm_path *with, const char **at_fault)
{
	struct bmm_hook *hook;
	int err = with ? path_prepare(with, at_fault) : 0;

	if (err || !with)
		return err;
	bmm_for_each_hook(hook, with) {
		err = bmm_hook_attach(hook);
		if (!err)
			continue;
		*at_fault = hook->symbol;
		return err;
	}
	return 0;
}

/* Begins to detach all hooks that only this path needs, if it is off. */
static void path_detach(struct bmm_path *path)
{
	struct bmm_hook *hook;

	if (path->mode || path_lent(path))
		return;
	bmm_for_each_hook(hook, path)
		bmm_hook_detach(hook, -ENODEV);
	if (path->with)
		path_detach(path->with);
}

/* 0 if all hooks are attached that the path cannot do without, or why not. */
static int path_lacks(const struct bmm_path *path)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path) {
		if (!bmm_hook_attached(hook))
			return hook->err;
		if (!path->whole)
			break;
	}
	return 0;
}

static int path_attach(struct bmm_path *path)
{
	const char *at_fault = NULL;
	struct bmm_hook *hook;
	int err = inert ? -ECANCELED : path_prepare(path, &at_fault);

	err = err ?: path_attach_with(path->with, &at_fault);
	bmm_for_each_hook(hook, path) {
		path_attach_hook(path, hook, err, err ? at_fault : NULL);
		if (!bmm_hook_attached(path->hooks))
			break;
	}
	err = path_lacks(path);
	if (err)
		path_detach(path);
	return err;
}

/* From here on the original serves, whoever holds the lock. */
static void path_pass(struct bmm_path *path)
{
	WRITE_ONCE(path->mode, BMM_OFF);
	path_set_thresholds(path);
}

/* Begins to detach; a hook that stays attached passes every call on. */
static void path_off(struct bmm_path *path)
{
	if (path->live)
		path->live(false);
	path_pass(path);
	path_detach(path);
}

/* Switches a path off for a task that may no longer wait for the lock. */
static void path_off_work(struct work_struct *work)
{
	struct bmm_path *path = container_of(work, struct bmm_path, off);

	scoped_guard(mutex, &control_lock) {
		/* else an earlier run did it, and the path may be on again */
		if (smp_load_acquire(&path->off_due)) {
			path_off(path);
			/* comes after its hooks have begun to detach */
			smp_store_release(&path->off_due, false);
		}
	}
	wake_up_all(&settled);
}

static bool path_among(const struct bmm_path *one, const struct bmm_path *path)
{
	return !path || one == path;
}

/* The outcome of having switched @path off; NULL: all paths. */
static int path_wait_off(struct bmm_path *path)
{
	int err = path_wait_settled(path);
	struct bmm_path *one;

	if (err)
		return err;
	for_each_path(one)
		if (path_among(one, path) && path_any(one, BMM_STUCK))
			return -EBUSY;
	return 0;
}

/*
 * Calls may reach a stuck hook, or not: ftrace may have shut down just after it
 * took the hook off its function. A path that needs every call stays off then.
 */
static int path_on(struct bmm_path *path, int mode)
{
	int err = path_any(path, BMM_DETACHED) ? path_attach(path) : 0;
	int before = path->mode;

	if (!err && path->whole && path_any(path, BMM_STUCK))
		err = -ESHUTDOWN;
	if (err)
		return err;
	WRITE_ONCE(path->mode, mode);
	path_set_thresholds(path);
	if (path->live && !before)
		path->live(true);
	return 0;
}

static int path_switch_on(struct bmm_path *path, int mode)
{
	int err = path_lock(path);

	if (err)
		return err;
	err = path_on(path, mode);
	bmm_prototype_done();
	bmm_fault_hold();
	mutex_unlock(&control_lock);
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
	struct bmm_path *one;

	for_each_path(one)
		if (path_among(one, path)) {
			if (one->stop)
				one->stop();
			else
				path_pass(one);
			/* comes after what was stored for the path */
			smp_store_release(&one->off_due, true);
			queue_work(system_dfl_wq, &one->off);
		}
	return path_wait_off(path);
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
struct bmm_path *bmm_path_of(const struct kobject *kobj)
{
	struct bmm_path *path;

	for_each_path(path)
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
		hook->at_fault = hook->symbol;
		hook->err = inert ? -ECANCELED : -ENODEV;
		hook->path = path;
		INIT_WORK(&hook->detach, path_detach_work);
	}
	INIT_WORK(&path->off, path_off_work);
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

	guard(mutex)(&control_lock);
	if (inert)
		pr_notice(
			"inert: no function is hooked until the module is loaded without it\n");
	for (i = 0; !inert && i < ARRAY_SIZE(bmm_paths); i++)
		if (modes[i])
			path_on(bmm_paths[i], modes[i]);
	bmm_prototype_done();
	WRITE_ONCE(started, true);
}

/*
 * The sum of a counter over all CPUs. A call may enter on one CPU and leave on
 * another: the in-flight count of one may be negative; the sum is right once no
 * new call can arrive.
 */
s64 bmm_path_sum(const struct bmm_path *path, unsigned int which)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(path->counters, cpu)->n[which]);
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

	flush_work(&path->off);
	for (;;) {
		scoped_guard(mutex, &control_lock)
			path_off(path);
		bmm_for_each_hook(hook, path)
			flush_work(&hook->detach);
		if (!path_any(path, BMM_ATTACHED) && !path_any(path, BMM_STUCK))
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
