// SPDX-License-Identifier: GPL-2.0-only
/* What all paths share: attach, switch, account, and leave without a trace. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "path.h"

/* Serialises attaching and switching, of all paths. */
static DEFINE_MUTEX(control_lock);

/* Set before the first path is made, and never again. */
static bool inert;

static void path_set_thresholds(struct bmm_path *path)
{
	struct bmm_hook *hook;
	bool on;

	bmm_for_each_hook(hook, path)
	{
		on = path->mode && path->mode >= hook->first_mode;
		WRITE_ONCE(*hook->threshold,
			   on ? hook->on_from : hook->off_from);
	}
}

/* Attaches one hook, or says in one line why not. */
static void path_attach_hook(struct bmm_path *path, struct bmm_hook *hook,
			     int err, const char *about)
{
	if (!hook->state)
		return;
	hook->about = err ? about : hook->symbol;
	hook->state = err ? err : bmm_hook_attach(hook);
	if (hook->state)
		pr_warn("%s: %s: %s: %s (%d)\n", path->name,
			hook == path->hooks ? "off" : "in part", hook->about,
			bmm_hook_why(hook->state), hook->state);
}

/* The path's state is that of its first hook. */
static int path_attach(struct bmm_path *path)
{
	const char *about = NULL;
	struct bmm_hook *hook;
	int err = inert ? -ECANCELED : path->prepare(&about);

	bmm_for_each_hook(hook, path)
	{
		path_attach_hook(path, hook, err, about ? about : hook->symbol);
		if (path->hooks[0].state)
			break;
	}
	return path->hooks[0].state;
}

static bool path_all_attached(const struct bmm_path *path)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path) if (hook->state) return false;
	return true;
}

/**
 * bmm_path_set_mode() - switch a path at run time
 * @path: the path
 * @mode: what to do with requests from now on; those under way finish in
 *        the mode they began in
 *
 * A hook that could not be attached earlier (-EBUSY, for one) is tried again
 * when the path is switched on.
 *
 * Return: 0, or the negative errno of attaching the first hook.
 */
int bmm_path_set_mode(struct bmm_path *path, int mode)
{
	int err;

	guard(mutex)(&control_lock);
	if (mode && !path_all_attached(path)) {
		err = path_attach(path);
		if (err)
			return err;
	}
	WRITE_ONCE(path->mode, mode);
	path_set_thresholds(path);
	return 0;
}

/**
 * bmm_path_make_inert() - have no path ever hook a function
 *
 * For an operator whose machine does not come up with the module: whatever
 * else it was told, it looks for no symbol and patches nothing. To be called
 * before the first bmm_path_init().
 */
void bmm_path_make_inert(void)
{
	inert = true;
}

/* A function is left alone until there is something to do or to count. */
static bool path_wanted(const struct bmm_path *path)
{
	if (inert)
		return false;
	return path->mode || path->hooks[0].off_from != BMM_HOOK_PASS;
}

/**
 * bmm_path_init() - allocate what a path needs and attach its hooks
 * @path: the path
 * @mode: mode to start in
 *
 * A hook that does not attach is no error: the path is off, or does without
 * it, the log and sysfs say why, and other paths go on.
 *
 * Return: 0 or -ENOMEM.
 */
int bmm_path_init(struct bmm_path *path, int mode)
{
	struct bmm_hook *hook;

	path->counters = alloc_percpu(struct bmm_counters);
	if (!path->counters)
		return -ENOMEM;
	bmm_for_each_hook(hook, path)
	{
		hook->about = hook->symbol;
		hook->state = inert ? -ECANCELED : -ENODEV;
	}
	guard(mutex)(&control_lock);
	path->mode = inert ? BMM_OFF : mode;
	path_set_thresholds(path);
	if (path_wanted(path) && path_attach(path))
		path->mode = BMM_OFF;
	return 0;
}

/**
 * bmm_path_sum() - a counter over all CPUs
 * @path:  the path
 * @which: the counter
 *
 * A call may enter on one CPU and leave on another: what is inflight on one
 * may be negative, the sum is right once no new call can arrive.
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

static void path_detach(struct bmm_path *path)
{
	struct bmm_hook *hook;

	guard(mutex)(&control_lock);
	bmm_for_each_hook(hook, path)
	{
		WRITE_ONCE(*hook->threshold, BMM_HOOK_PASS);
		bmm_hook_detach(hook);
	}
}

/**
 * bmm_path_exit() - detach all hooks and wait until nobody is inside
 * @paths: the paths, nobody can switch them any more
 * @n:     how many
 *
 * After the hooks are gone, a task may still be (1) in the trampoline or before
 * the first instruction that counts it, (2) in the handler, counted, or (3)
 * between the last instruction that counts it and its return. The three waits
 * take them in this order. They are for all paths at once: beside tasks that
 * hardly ever sleep, one grace period of RCU tasks takes seconds.
 */
void bmm_path_exit(struct bmm_path *const paths[], size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		path_detach(paths[i]);
	synchronize_rcu_tasks();
	for (i = 0; i < n; i++)
		while (bmm_path_sum(paths[i], BMM_INFLIGHT))
			msleep(1);
	synchronize_rcu_tasks();
	for (i = 0; i < n; i++)
		free_percpu(paths[i]->counters);
}
