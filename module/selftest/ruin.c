// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trouble on a machine that the module has to survive.
 *
 * debugfs bulkmm_lab/kill_ftrace: shuts ftrace down for good, as ftrace does
 * itself when it finds something wrong.
 *
 * debugfs bulkmm_lab/hold: takes a reference to the kobject of a sysfs
 * directory, given its path; an empty line drops it.
 */
#include <linux/cleanup.h>
#include <linux/ftrace.h>
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/namei.h>
#include <linux/static_call.h>

#include "../symbols.c"
#include "lab.h"

DEFINE_STATIC_CALL_NULL(kill_ftrace, ftrace_kill);

static DEFINE_MUTEX(lock);
static struct kobject *held;

static int kill_write(char *text)
{
	long entry = bmm_symbol_entry("ftrace_kill");

	if (IS_ERR_VALUE(entry))
		return entry;
	static_call_update(kill_ftrace, (void *)entry);
	static_call(kill_ftrace)();
	return 0;
}

static int hold(const char *name)
{
	struct kernfs_node *node;
	struct path path;
	int err = kern_path(name, LOOKUP_FOLLOW, &path);

	if (err)
		return err;
	node = d_inode(path.dentry)->i_private;
	held = kobject_get(node->priv);
	path_put(&path);
	return held ? 0 : -ENOENT;
}

static void drop(void)
{
	kobject_put(held);
	held = NULL;
}

static int hold_write(char *name)
{
	guard(mutex)(&lock);
	drop();
	return *name ? hold(name) : 0;
}

const struct bmm_lab_part bmm_lab_ruin = {
	.files =
		(const struct bmm_lab_file[]){
			{ "kill_ftrace", kill_write },
			{ "hold", hold_write },
			{},
		},
	.exit = drop,
};
