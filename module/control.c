// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/bulkmm: one directory per path, a file per setting, and all
 * counters in "stats". Settings with choices list them all, the current one in
 * brackets, and reject any other with one line that names the valid ones.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "control.h"
#include "faults.h"

/* Lists names, the chosen one in brackets, in a page-sized or smaller buffer. */
static size_t control_list(const char *const *names, int selected, char *buf,
			   size_t size)
{
	size_t at = 0;
	int i;

	for (i = 0; names[i]; i++)
		at += scnprintf(buf + at, size - at,
				i == selected ? "%s[%s]" : "%s%s",
				at ? " " : "", names[i]);
	return at;
}

/* The index of a word among names up to NULL, or -EINVAL after logging them. */
int bmm_choice_parse(const char *path, const char *setting,
		     const char *const *names, const char *text)
{
	char valid[64];
	int i;

	for (i = 0; names[i]; i++)
		if (sysfs_streq(text, names[i]))
			return i;
	control_list(names, -1, valid, sizeof(valid));
	pr_err("%s: unknown %s '%.*s': valid are %s\n", path, setting,
	       min((int)strcspn(text, "\n"), 16), text, valid);
	return -EINVAL;
}

/* Shows all names, the chosen one in brackets. */
ssize_t bmm_choice_show(const char *const *names, int selected, char *buf)
{
	size_t at = control_list(names, selected, buf, PAGE_SIZE);

	return sysfs_emit_at(buf, at, "\n") + at;
}

/* The index of a path's mode, as bmm_choice_parse(). */
int bmm_parse_mode(const struct bmm_path *path, const char *text)
{
	return bmm_choice_parse(path->name, "mode", path->modes, text);
}

static ssize_t mode_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	const struct bmm_path *path = bmm_path_find(kobj);

	return bmm_choice_show(path->modes, READ_ONCE(path->mode), buf);
}

static ssize_t mode_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	struct bmm_path *path = bmm_path_find(kobj);
	int mode = bmm_parse_mode(path, buf);

	if (mode >= 0)
		mode = bmm_path_set_mode(path, mode);
	return mode < 0 ? mode : len;
}

/* One line for each function. */
static ssize_t hook_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	const struct bmm_hook *hook;
	ssize_t at = 0;

	bmm_for_each_hook(hook, bmm_path_find(kobj)) {
		at += sysfs_emit_at(buf, at, "%d %s: %s\n",
				    bmm_hook_status(hook),
				    READ_ONCE(hook->err_subject),
				    bmm_hook_text(hook));
	}
	return at;
}

/*
 * A line "NAME VALUE" for each counter, far less than a page. Each is a sum
 * over the CPUs of its own moment: counting goes on between two of them.
 */
static ssize_t stats_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	const struct bmm_path *path = bmm_path_find(kobj);
	ssize_t at = 0;
	unsigned int i;

	for (i = 0; i < BMM_COUNTERS; i++)
		if (path->names[i])
			at += sysfs_emit_at(buf, at, "%s %lld\n", path->names[i],
					    bmm_path_sum(path, i));
	return at;
}

static const struct bmm_tunable *control_tunable(struct kobj_attribute *attr)
{
	return container_of(attr, struct bmm_tunable, file);
}

ssize_t bmm_tunable_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%lu\n",
			  READ_ONCE(*control_tunable(attr)->value));
}

ssize_t bmm_tunable_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	const struct bmm_tunable *tunable = control_tunable(attr);
	unsigned long value;
	int err = kstrtoul(buf, 0, &value);

	if (!err && value > tunable->max)
		err = -ERANGE;
	if (err) {
		pr_err("%s: bad value '%.*s': a number from 0 to %lu\n",
		       bmm_path_find(kobj)->name,
		       min((int)strcspn(buf, "\n"), 24), buf, tunable->max);
		return err;
	}
	WRITE_ONCE(*tunable->value, value);
	return len;
}

static struct kobj_attribute mode_attr = __ATTR_RW(mode);
static struct kobj_attribute hook_attr = __ATTR_RO(hook);
static struct kobj_attribute stats_attr = __ATTR_RO(stats);

static const struct attribute *const path_attrs[] = {
	&mode_attr.attr,
	&hook_attr.attr,
	&stats_attr.attr,
	NULL,
};

static struct kobject *root;

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", THIS_MODULE->version);
}

static struct kobj_attribute version_attr = __ATTR_RO(version);

/* Paths switched off together wait together. */
static ssize_t off_store(struct kobject *kobj, struct kobj_attribute *attr,
			 const char *buf, size_t len)
{
	int err;

	if (!sysfs_streq(buf, "1")) {
		pr_err("off: write 1, which switches all paths off\n");
		return -EINVAL;
	}
	err = bmm_path_set_mode(NULL, BMM_OFF);
	return err ? err : len;
}

static struct kobj_attribute off_attr = __ATTR(off, 0200, NULL, off_store);

static const struct attribute *const root_attrs[] = {
	&version_attr.attr,
	&off_attr.attr,
	NULL,
};

/*
 * Creates a directory with files, up to a NULL in either list. Their functions
 * find it in @dir. Returns 0 or a negative errno; control_drop() removes what
 * there is either way.
 */
static int control_create(struct kobject **dir, const char *name,
			  struct kobject *parent,
			  const struct attribute *const *files,
			  const struct attribute *const *more)
{
	struct kobject *kobj = NULL;
	int err;

	if (!bmm_fault_alloc())
		kobj = kobject_create_and_add(name, parent);
	WRITE_ONCE(*dir, kobj);
	if (!kobj || bmm_fault_alloc())
		return -ENOMEM;
	err = sysfs_create_files(kobj, files);
	return err ?: sysfs_create_files(kobj, more);
}

/* A holder may keep its reference: name and files are gone. */
static void control_drop(struct kobject *kobj)
{
	kobject_del(kobj);
	kobject_put(kobj);
}

/** bmm_control_add() - add a path to sysfs, initialised; 0 or a negative errno */
int bmm_control_add(struct bmm_path *path)
{
	return control_create(&path->kobj, path->name, root, path_attrs,
			      path->files);
}

/**
 * bmm_control_remove() - remove a path from sysfs, if it is there
 * @path: the path; when this returns, no reader or writer is inside
 */
void bmm_control_remove(struct bmm_path *path)
{
	control_drop(path->kobj);
}

/** bmm_control_init() - create /sys/kernel/bulkmm; 0 or a negative errno */
int bmm_control_init(void)
{
	static const struct attribute *const no_files[] = { NULL };

	return control_create(&root, "bulkmm", kernel_kobj, root_attrs,
			      no_files);
}

/** bmm_control_exit() - remove /sys/kernel/bulkmm, if it is there */
void bmm_control_exit(void)
{
	control_drop(root);
}
