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

static void set_threshold(struct bmm_path *path)
{
	WRITE_ONCE(*path->hook.threshold,
		   path->mode ? path->on_from : path->off_from);
}

/* Attaches the hook, or says in one line why not. */
static int attach(struct bmm_path *path)
{
	int err;

	path->about = path->hook.symbol;
	err = path->prepare(&path->about);
	if (err)
		path->hook.state = err;
	else
		err = bmm_hook_attach(&path->hook);
	if (err)
		pr_warn("%s: off: %s: %s (%d)\n", path->name, path->about,
			bmm_hook_why(err), err);
	return err;
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
 * Return: 0, or the negative errno of attaching.
 */
int bmm_path_set_mode(struct bmm_path *path, int mode)
{
	int err;

	guard(mutex)(&control_lock);
	if (mode && path->hook.state) {
		err = attach(path);
		if (err)
			return err;
	}
	WRITE_ONCE(path->mode, mode);
	set_threshold(path);
	return 0;
}

/* A function is left alone until there is something to do or to count. */
static bool wanted(const struct bmm_path *path)
{
	return path->mode || path->off_from != BMM_HOOK_PASS;
}

/**
 * bmm_path_init() - allocate what a path needs and attach its hook
 * @path: the path
 * @mode: mode to start in
 *
 * A hook that does not attach is no error: the path is off, the log and
 * sysfs say why, and other paths go on.
 *
 * Return: 0 or -ENOMEM.
 */
int bmm_path_init(struct bmm_path *path, int mode)
{
	path->inflight = alloc_percpu(int);
	if (!path->inflight)
		return -ENOMEM;
	path->about = path->hook.symbol;
	path->hook.state = -ENODEV;
	guard(mutex)(&control_lock);
	path->mode = mode;
	set_threshold(path);
	if (wanted(path) && attach(path))
		path->mode = BMM_OFF;
	return 0;
}

/**
 * bmm_path_inflight() - calls inside the handler
 * @path: the path
 *
 * A call may enter on one CPU and leave on another: single counters may be
 * negative, the sum is right once no new call can arrive.
 *
 * Return: the number.
 */
long bmm_path_inflight(const struct bmm_path *path)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(path->inflight, cpu);
	return sum;
}

/**
 * bmm_path_exit() - give the function back and wait until nobody is inside
 * @path: the path
 *
 * After the hook is gone, a task may still be (1) in the trampoline or before
 * the first instruction that counts it, (2) in the handler, counted, or (3)
 * between the last instruction that counts it and its return. The three waits
 * take them in this order.
 */
void bmm_path_exit(struct bmm_path *path)
{
	mutex_lock(&control_lock);
	WRITE_ONCE(*path->hook.threshold, BMM_HOOK_PASS);
	bmm_hook_detach(&path->hook);
	mutex_unlock(&control_lock);

	synchronize_rcu_tasks();
	while (bmm_path_inflight(path))
		msleep(1);
	synchronize_rcu_tasks();
	free_percpu(path->inflight);
}
