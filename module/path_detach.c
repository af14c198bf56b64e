// SPDX-License-Identifier: GPL-2.0-only
/*
 * Detaching the hooks of paths that were switched off, and waiting for it: a
 * work item of each hook waits for ftrace and for the last calls, which nothing
 * interrupts; the task that switches waits for the work items, but not for ever.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>

#include "compat/compat.h"
#include "faults.h"
#include "path_internal.h"

/* How long a task that switches a path waits for the last calls. */
#define PATIENCE_S 30

DEFINE_MUTEX(bmm_path_mutex);
DECLARE_WAIT_QUEUE_HEAD(bmm_path_settled);

bool bmm_path_has_hook(const struct bmm_path *path, enum bmm_hook_state state)
{
	const struct bmm_hook *hook;

	bmm_for_each_hook(hook, path) {
		if (READ_ONCE(hook->state) == state)
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
void bmm_path_detach_work(struct work_struct *work)
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

	scoped_guard(mutex, &bmm_path_mutex)
		bmm_hook_release(hook);
	wake_up_all(&bmm_path_settled);
}

/*
 * Returns a path that is still to be detached, or detaching: @path or what it
 * needs, or any if it is NULL. The last path first: what one needs comes before
 * it in paths.def, and begins to detach before its own disable_due is cleared.
 */
static struct bmm_path *path_find_detaching(struct bmm_path *path)
{
	size_t i = BMM_PATHS;
	struct bmm_path *other;

	while (i--) {
		other = bmm_paths[i];
		/* pairs with path_disable_work(): no hook is seen as it was
		 * before */
		if ((!path || other == path || other == path->needs_hooks_of) &&
		    (smp_load_acquire(&other->disable_due) ||
		     bmm_path_has_hook(other, BMM_DETACHING)))
			return other;
	}
	return NULL;
}

/* Waits until no hook of @path, or of any path, is detaching; returns 0 then. */
static int path_wait_settled(struct bmm_path *path)
{
	unsigned int patience = bmm_fault_patience(PATIENCE_S);
	long remaining = wait_event_interruptible_timeout(
		bmm_path_settled, !path_find_detaching(path), patience * HZ);
	struct bmm_path *pending;

	/* Settled counts, even if somebody has switched it again since. */
	if (remaining)
		return min(remaining, 0L);
	pending = path_find_detaching(path);
	if (!pending)
		return 0;
	pr_notice(
		"%s: still detaching after %u s, waits for %s: it goes on by itself\n",
		pending->name, patience,
		READ_ONCE(pending->disable_due) ? "its turn to be switched" :
						  READ_ONCE(pending->waits_for));
	return -EINPROGRESS;
}

/* Takes the lock once no hook of the path is detaching. */
int bmm_path_lock(struct bmm_path *path)
{
	int err;

	for (;;) {
		err = path_wait_settled(path);
		if (!err)
			err = mutex_lock_interruptible(&bmm_path_mutex);
		if (err || !path_find_detaching(path))
			return err;
		mutex_unlock(&bmm_path_mutex);
	}
}

bool bmm_path_matches(const struct bmm_path *candidate,
		      const struct bmm_path *path)
{
	return !path || candidate == path;
}

/* The outcome of having switched @path off; NULL: all paths. */
int bmm_path_wait_off(struct bmm_path *path)
{
	int err = path_wait_settled(path);
	struct bmm_path *other;

	if (err)
		return err;
	bmm_for_each_path(other)
		if (bmm_path_matches(other, path) &&
		    bmm_path_has_hook(other, BMM_STUCK))
			return -EBUSY;
	return 0;
}
