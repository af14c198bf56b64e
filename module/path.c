// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all paths share: attaching, switching, accounting, and leaving without a
 * trace.
 *
 * A path that is off has no hook: its functions are as the kernel built them.
 * Switching it off takes until the last call has left the module's text. The
 * task that switches waits for that, but not for ever, and a signal ends its
 * wait; a work item does the actual waiting, which nothing interrupts.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>

#include "compat/compat.h"
#include "faults.h"
#include "path.h"
#include "prototype.h"

/* How long a task that switches a path waits for the last calls. */
#define PATIENCE_S 30

/*
 * Serialises attaching and detaching, for all paths; held for a rude grace
 * period at most, never until calls end.
 */
static DEFINE_MUTEX(control_lock);
static DECLARE_WAIT_QUEUE_HEAD(settled);
static LIST_HEAD(all_paths);

/* Set before the first path is initialised, never cleared. */
static bool inert;

/* Nobody can switch a path until all of them are initialised. */
static bool started;

static void path_set_thresholds(struct bmm_path *path)
{
	struct bmm_hook *hook;
	bool on;

	bmm_for_each_hook(hook, path)
	{
		on = path->mode && path->mode >= hook->first_mode;
		WRITE_ONCE(*hook->threshold, on ? hook->on_from : BMM_HOOK_PASS);
	}
}

static bool path_any(const struct bmm_path *path, enum bmm_hook_life life)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path)
	{
		if (READ_ONCE(hook->life) == life)
			return true;
	}
	return false;
}

static bool path_settled(const struct bmm_path *path)
{
	return !path_any(path, BMM_DETACHING) && !path_any(path, BMM_LEAVING);
}

static void path_wait_empty(struct bmm_path *path)
{
	while (bmm_path_sum(path, BMM_INFLIGHT))
		msleep(1);
}

/*
 * After the hooks are detached, a task may still be (1) in the trampoline or
 * before the first instruction that counts it, (2) in the handler, counted, or
 * (3) between the last instruction that counts it and its return. The three
 * waits cover these in order. The first also makes sure that ftrace no longer
 * uses what was registered; a grace period of RCU tasks is not enough for that
 * where RCU is not watching, hence the rude one. Paths that are switched off
 * together share the grace periods.
 *
 * A hook detached during this wait is not covered: its path is queued again.
 */
static void path_detached(struct work_struct *work)
{
	struct bmm_path *path = container_of(work, struct bmm_path, detached);
	struct bmm_hook *hook;
	bool any = false;

	scoped_guard(mutex, &control_lock)
	{
		bmm_for_each_hook(hook, path) any |= bmm_hook_leaving(hook);
	}
	if (!any)
		return;
	WRITE_ONCE(path->waits_for, "every task to sleep once");
	synchronize_rcu_tasks_rude();
	synchronize_rcu_tasks();
	WRITE_ONCE(path->waits_for, "calls that are inside");
	path_wait_empty(path);
	WRITE_ONCE(path->waits_for, "every task to sleep once more");
	synchronize_rcu_tasks();

	scoped_guard(mutex, &control_lock)
	{
		bmm_for_each_hook(hook, path) bmm_hook_detached(hook);
	}
	wake_up_all(&settled);
}

static void path_start_waiting(struct bmm_path *path)
{
	if (path_any(path, BMM_DETACHING))
		queue_work(system_dfl_wq, &path->detached);
}

/* Waits until no hook of the path is detaching; returns 0 then. */
static int path_wait_settled(struct bmm_path *path)
{
	unsigned int patience = bmm_fault_patience(PATIENCE_S);
	long left = wait_event_interruptible_timeout(settled, path_settled(path),
						     patience * HZ);

	if (left < 0)
		return left;
	if (left)
		return 0;
	pr_notice(
		"%s: still detaching after %u s, waits for %s: it goes on by itself\n",
		path->name, patience, READ_ONCE(path->waits_for));
	return -EINPROGRESS;
}

/* Takes the lock once no hook of the path is detaching. */
static int path_lock(struct bmm_path *path)
{
	int err;

	for (;;) {
		err = mutex_lock_interruptible(&control_lock);
		if (err)
			return err;
		if (path_settled(path))
			return 0;
		mutex_unlock(&control_lock);
		err = path_wait_settled(path);
		if (err)
			return err;
	}
}

/* Attaches one hook, or logs in one line why not. */
static int path_attach_hook(struct bmm_path *path, struct bmm_hook *hook,
			    int err, const char *about)
{
	if (bmm_hook_attached(hook))
		return 0;
	WRITE_ONCE(hook->about, err ? about : hook->symbol);
	WRITE_ONCE(hook->why, err);
	if (!err)
		err = bmm_hook_attach(hook);
	if (err)
		pr_warn("%s: %s: %s: %s (%d)\n", path->name,
			hook == path->hooks ? "off" : "in part", hook->about,
			bmm_hook_why(err), err);
	return err;
}

/* The path cannot do without its first hook. */
static int path_attach(struct bmm_path *path)
{
	const char *about = NULL;
	struct bmm_hook *hook;
	int err = inert ? -ECANCELED : path->prepare(&about);

	bmm_for_each_hook(hook, path)
	{
		path_attach_hook(path, hook, err, about ? about : hook->symbol);
		if (!bmm_hook_attached(path->hooks))
			break;
	}
	path_start_waiting(path);
	return bmm_hook_attached(path->hooks) ? 0 : path->hooks->why;
}

/* From here on the original serves. Returns whether a hook is attached. */
static bool path_close(struct bmm_path *path)
{
	struct bmm_hook *hook;
	bool any = false;

	WRITE_ONCE(path->mode, BMM_OFF);
	path_set_thresholds(path);
	bmm_for_each_hook(hook, path) any |= bmm_hook_hide(hook);
	return any;
}

/* A hook that stays attached passes every call on to the original. */
static int path_detach(struct bmm_path *path)
{
	struct bmm_hook *hook;
	int err, failed = 0;

	bmm_for_each_hook(hook, path)
	{
		err = bmm_hook_detach(hook);
		failed = failed ?: err;
	}
	path_start_waiting(path);
	return failed;
}

static int path_off(struct bmm_path *path)
{
	if (path_close(path))
		synchronize_rcu_tasks_rude();
	return path_detach(path);
}

static bool path_all_attached(const struct bmm_path *path)
{
	return !path_any(path, BMM_DETACHED);
}

static int path_switch(struct bmm_path *path, int mode)
{
	int err = 0;

	if (mode == BMM_OFF)
		return path_off(path);
	if (!path_all_attached(path))
		err = path_attach(path);
	if (err)
		return err;
	WRITE_ONCE(path->mode, mode);
	path_set_thresholds(path);
	return 0;
}

/**
 * bmm_path_set_mode() - switch a path at run time
 * @path: the path
 * @mode: for requests from now on; those in progress finish in the mode they
 *        began in
 *
 * A hook that could not be attached earlier (-EBUSY, for example) is tried
 * again when the path is switched on. When this has switched a path off, no
 * call is inside any more.
 *
 * Return: 0; -EAGAIN while the module is loading; the negative errno of
 * attaching the first hook, with the mode unchanged; -EBUSY if a hook can never
 * be detached, -ENOMEM if not now, the path being off all the same; or
 * -EINPROGRESS on a timeout, -EINTR or -ERESTARTSYS on a signal: in the wait
 * before the switch to another mode, which is unchanged then, or in the one
 * after off.
 */
int bmm_path_set_mode(struct bmm_path *path, int mode)
{
	int err;

	if (!READ_ONCE(started))
		return -EAGAIN;
	/* off first, then wait: a hook may be detaching while the path is on */
	err = mode ? path_lock(path) : mutex_lock_interruptible(&control_lock);
	if (err)
		return err;
	err = path_switch(path, mode);
	bmm_prototype_done();
	mutex_unlock(&control_lock);
	return err || mode ? err : path_wait_settled(path);
}

/**
 * bmm_path_all_off() - switch all paths off, and wait for them together
 *
 * Return: 0, or the first negative errno, as in bmm_path_set_mode().
 */
int bmm_path_all_off(void)
{
	struct bmm_path *path;
	int err, failed = 0;
	bool any = false;

	if (!READ_ONCE(started))
		return -EAGAIN;
	err = mutex_lock_interruptible(&control_lock);
	if (err)
		return err;
	list_for_each_entry(path, &all_paths, list) any |= path_close(path);
	if (any)
		synchronize_rcu_tasks_rude();
	/* a path that fails keeps no other from being switched off */
	list_for_each_entry(path, &all_paths, list)
	{
		err = path_detach(path);
		failed = failed ?: err;
	}
	mutex_unlock(&control_lock);
	list_for_each_entry(path, &all_paths, list)
	{
		err = path_wait_settled(path);
		if (err)
			return err;
	}
	return failed;
}

/**
 * bmm_path_of() - the path that a sysfs directory belongs to
 * @kobj: the directory
 *
 * Return: the path, or NULL.
 */
struct bmm_path *bmm_path_of(const struct kobject *kobj)
{
	struct bmm_path *path;

	/* others may be added meanwhile; none goes while it has files */
	list_for_each_entry_rcu(path, &all_paths, list, true)
	{
		if (READ_ONCE(path->kobj) == kobj)
			return path;
	}
	return NULL;
}

/**
 * bmm_path_make_inert() - never let a path hook a function
 *
 * For an operator whose machine does not come up with the module: whatever the
 * other parameters say, it looks up no symbol and patches nothing. Call before
 * the first bmm_path_init().
 */
void bmm_path_make_inert(void)
{
	inert = true;
}

/**
 * bmm_path_init() - allocate what a path needs
 * @path: the path, off
 *
 * Return: 0 or -ENOMEM.
 */
int bmm_path_init(struct bmm_path *path)
{
	struct bmm_hook *hook;

	if (!bmm_fault_alloc())
		path->counters = alloc_percpu(struct bmm_counters);
	if (!path->counters)
		return -ENOMEM;
	bmm_for_each_hook(hook, path)
	{
		hook->about = hook->symbol;
		hook->why = inert ? -ECANCELED : -ENODEV;
	}
	path_set_thresholds(path);
	INIT_WORK(&path->detached, path_detached);
	list_add_tail_rcu(&path->list, &all_paths);
	return 0;
}

/**
 * bmm_path_start() - switch paths to their modes at load
 * @paths: the paths
 * @modes: the mode of each
 * @n:     number of paths
 *
 * The last step of loading, after which nothing can fail: a function that has
 * been hooked may be impossible to unhook. A hook that does not attach is no
 * error: the path is off, or makes do without it; the log and sysfs say why.
 */
void bmm_path_start(struct bmm_path *const paths[], const int modes[], size_t n)
{
	size_t i;

	guard(mutex)(&control_lock);
	for (i = 0; !inert && i < n; i++)
		if (modes[i])
			path_switch(paths[i], modes[i]);
	bmm_prototype_done();
	WRITE_ONCE(started, true);
}

/**
 * bmm_path_sum() - sum a counter over all CPUs
 * @path:  the path
 * @which: the counter
 *
 * A call may enter on one CPU and leave on another: the in-flight count of one
 * may be negative; the sum is right once no new call can arrive.
 *
 * Return: the sum.
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
	for (;;) {
		scoped_guard(mutex, &control_lock) path_off(path);
		flush_work(&path->detached);
		if (!path_any(path, BMM_ATTACHED) &&
		    !path_any(path, BMM_FOR_GOOD))
			break;
		ssleep(1);
	}
}

/**
 * bmm_path_exit() - free what a path has allocated
 * @path: the path; nobody can switch it any more
 */
void bmm_path_exit(struct bmm_path *path)
{
	path_force_off(path);
	list_del(&path->list);
	free_percpu(path->counters);
}
