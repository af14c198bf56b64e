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

#include "../symbols.h"
#include "lab.h"

DEFINE_STATIC_CALL_NULL(kill_ftrace, ftrace_kill);

static DEFINE_MUTEX(lock);
static struct kobject *held;

static ssize_t kill_write(struct file *file, const char __user *buf, size_t len,
			  loff_t *pos)
{
	long entry = bmm_symbol_entry("ftrace_kill");

	if (IS_ERR_VALUE(entry))
		return entry;
	static_call_update(kill_ftrace, (void *)entry);
	static_call(kill_ftrace)();
	return len;
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

static ssize_t hold_write(struct file *file, const char __user *buf, size_t len,
			  loff_t *pos)
{
	char name[64] = "";
	int err;

	if (len >= sizeof(name) || copy_from_user(name, buf, len))
		return -EINVAL;
	guard(mutex)(&lock);
	kobject_put(held);
	held = NULL;
	err = *strim(name) ? hold(strim(name)) : 0;
	return err ? err : len;
}

static const struct file_operations kill_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = kill_write,
};

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = hold_write,
};

void bmm_ruin_init(struct dentry *dir)
{
	debugfs_create_file("kill_ftrace", 0200, dir, NULL, &kill_fops);
	debugfs_create_file("hold", 0200, dir, NULL, &hold_fops);
}

void bmm_ruin_exit(void)
{
	kobject_put(held);
}
