// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/bulkmm: one directory per path, one value per file. Settings with
 * choices list them all, the current one in brackets, and reject any other with
 * one line that names the valid ones.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "control.h"
#include "faults.h"

#define DIR_FILES 32 /* most files of a subdirectory */

/* Appends a choice to a list in a page-sized or smaller buffer. */
static size_t control_add_choice(char *buf, size_t size, size_t at,
				 const char *name, bool chosen)
{
	return at + scnprintf(buf + at, size - at, chosen ? "%s[%s]" : "%s%s",
			      at ? " " : "", name);
}

static size_t control_list_modes(const struct bmm_path *path, bool mark,
				 char *buf, size_t size)
{
	size_t at = 0;
	int m;

	for (m = 0; path->modes[m]; m++)
		at = control_add_choice(buf, size, at, path->modes[m],
					mark && m == READ_ONCE(path->mode));
	return at;
}

/**
 * bmm_parse_mode() - look a path's mode up by name
 * @path: the path
 * @text: the name, a trailing newline allowed
 *
 * Return: an index into its modes, or -EINVAL after logging the valid names.
 */
int bmm_parse_mode(const struct bmm_path *path, const char *text)
{
	char valid[64];
	int m;

	for (m = 0; path->modes[m]; m++)
		if (sysfs_streq(text, path->modes[m]))
			return m;
	control_list_modes(path, false, valid, sizeof(valid));
	pr_err("%s: unknown mode '%.*s': valid are %s\n", path->name,
	       min((int)strcspn(text, "\n"), 16), text, valid);
	return -EINVAL;
}

static ssize_t mode_show(struct bmm_path *path, unsigned int index, char *buf)
{
	size_t at = control_list_modes(path, true, buf, PAGE_SIZE);

	return sysfs_emit_at(buf, at, "\n") + at;
}

static ssize_t mode_store(struct bmm_path *path, unsigned int index,
			  const char *buf, size_t len)
{
	int mode = bmm_parse_mode(path, buf);

	if (mode >= 0)
		mode = bmm_path_set_mode(path, mode);
	return mode < 0 ? mode : len;
}

/* One line for each function. */
static ssize_t hook_show(struct bmm_path *path, unsigned int index, char *buf)
{
	const struct bmm_hook *hook;
	ssize_t at = 0;

	bmm_for_each_hook(hook, path)
	{
		at += sysfs_emit_at(buf, at, "%d %s: %s\n", bmm_hook_state(hook),
				    READ_ONCE(hook->about), bmm_hook_says(hook));
	}
	return at;
}

/* The sum of a counter over all CPUs; @index is the counter. */
ssize_t bmm_counter_show(struct bmm_path *path, unsigned int index, char *buf)
{
	return sysfs_emit(buf, "%lld\n", bmm_path_sum(path, index));
}

/**
 * bmm_parse_number() - parse a number written to a setting
 * @path:  the path of the setting
 * @text:  what was written, in a form kstrtoul() accepts
 * @most:  the largest valid value
 * @value: result
 *
 * Return: 0, or a negative errno after one line in the log.
 */
int bmm_parse_number(const struct bmm_path *path, const char *text,
		     unsigned long most, unsigned long *value)
{
	int err = kstrtoul(text, 0, value);

	if (!err && *value > most)
		err = -ERANGE;
	if (err)
		pr_err("%s: bad value '%.*s': a number from 0 to %lu\n",
		       path->name, min((int)strcspn(text, "\n"), 24), text,
		       most);
	return err;
}

static ssize_t reason_show(struct bmm_path *path, unsigned int index, char *buf)
{
	return bmm_counter_show(path, BMM_FALLBACKS + index, buf);
}

#define BMM_FILE(_name, _mode, _show, _store, _index)        \
	static struct bmm_attribute _name##_attr = {         \
		.attr = { .name = #_name, .mode = (_mode) }, \
		.show = (_show),                             \
		.store = (_store),                           \
		.index = (_index),                           \
	}

BMM_FILE(mode, 0644, mode_show, mode_store, 0);
BMM_FILE(hook, 0444, hook_show, NULL, 0);
BMM_FILE(hits, 0444, bmm_counter_show, NULL, BMM_HITS);
BMM_FILE(bytes, 0444, bmm_counter_show, NULL, BMM_BYTES);
BMM_FILE(ns, 0444, bmm_counter_show, NULL, BMM_NS);
BMM_FILE(inflight, 0444, bmm_counter_show, NULL, BMM_INFLIGHT);

static struct attribute *path_attrs[] = {
	&mode_attr.attr,
	&hook_attr.attr,
	&hits_attr.attr,
	&bytes_attr.attr,
	&ns_attr.attr,
	&inflight_attr.attr,
	NULL,
};

static const struct attribute_group path_group = { .attrs = path_attrs };

static ssize_t control_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	struct bmm_attribute *file = container_of(attr, struct bmm_attribute,
						  kobj_attr);

	return file->show(bmm_path_of(kobj), file->index, buf);
}

static ssize_t control_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t len)
{
	struct bmm_attribute *file = container_of(attr, struct bmm_attribute,
						  kobj_attr);

	if (!file->store)
		return -EIO;
	return file->store(bmm_path_of(kobj), file->index, buf, len);
}

/* A path's files have their own functions; kobject's functions call them. */
static void control_fill(struct attribute **attrs)
{
	struct bmm_attribute *file;

	for (; *attrs; attrs++) {
		file = container_of(*attrs, struct bmm_attribute, attr);
		sysfs_attr_init(&file->attr);
		file->kobj_attr.show = control_show;
		file->kobj_attr.store = control_store;
	}
}

static struct kobject *root;

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", THIS_MODULE->version);
}

static struct kobj_attribute version_attr = __ATTR_RO(version);

/* Accepts any true value. Paths switched off together wait together. */
static ssize_t off_store(struct kobject *kobj, struct kobj_attribute *attr,
			 const char *buf, size_t len)
{
	bool off;
	int err = kstrtobool(buf, &off);

	if (err || !off) {
		pr_err("off: write 1, which switches all paths off\n");
		return -EINVAL;
	}
	err = bmm_path_all_off();
	return err ? err : len;
}

static struct kobj_attribute off_attr = __ATTR(off, 0200, NULL, off_store);

static struct attribute *root_attrs[] = {
	&version_attr.attr,
	&off_attr.attr,
	NULL,
};

static const struct attribute_group root_group = { .attrs = root_attrs };

/* A subdirectory of a path's; its files must live as long as the path's. */
struct control_dir {
	struct list_head list;
	unsigned int nr;
	struct bmm_attribute file[] __counted_by(nr);
};

static struct control_dir *control_new_dir(struct bmm_path *path,
					   unsigned int nr)
{
	struct control_dir *dir = NULL;

	if (!bmm_fault_alloc())
		dir = kzalloc(struct_size(dir, file, nr), GFP_KERNEL);
	if (!dir)
		return NULL;
	dir->nr = nr;
	list_add(&dir->list, &path->dirs);
	return dir;
}

static void control_free_dirs(struct bmm_path *path)
{
	struct control_dir *dir, *next;

	list_for_each_entry_safe(dir, next, &path->dirs, list) kfree(dir);
}

static int control_add_dir(struct bmm_path *path, const char *name,
			   struct control_dir *dir)
{
	struct attribute *attrs[DIR_FILES + 1] = {};
	const struct attribute_group group = { .name = name, .attrs = attrs };
	unsigned int i;

	for (i = 0; i < dir->nr; i++)
		attrs[i] = &dir->file[i].attr;
	control_fill(attrs);
	return sysfs_create_group(path->kobj, &group);
}

static void control_set_file(struct control_dir *dir, unsigned int i,
			     const char *name, unsigned int index,
			     ssize_t (*show)(struct bmm_path *, unsigned int,
					     char *))
{
	dir->file[i].attr.name = name;
	dir->file[i].attr.mode = 0444;
	dir->file[i].show = show;
	dir->file[i].index = index;
}

static int control_add_reasons(struct bmm_path *path)
{
	struct control_dir *dir;
	unsigned int i, nr = 0;

	while (nr < BMM_REASONS && path->reasons[nr])
		nr++;
	dir = control_new_dir(path, nr);
	if (!dir)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		control_set_file(dir, i, path->reasons[i], i, reason_show);
	return control_add_dir(path, "fallbacks", dir);
}

/* "backend_node0": which backend serves, and how fast each one was. */
static int control_add_pick(struct bmm_path *path, unsigned int index,
			    unsigned int which)
{
	const struct bmm_picks *picks = path->picks[index];
	unsigned int k, nr = 0, at = bmm_picks_index(index, which);
	struct control_dir *dir;
	char name[32];

	while (nr < BMM_CANDIDATES && bmm_candidate(picks->op, nr))
		nr++;
	dir = control_new_dir(path, nr + 1);
	if (!dir)
		return -ENOMEM;
	for (k = 0; k < nr; k++)
		control_set_file(dir, k, bmm_candidate(picks->op, k)->name,
				 at + k, bmm_picks_rate_show);
	control_set_file(dir, nr, "serving", at, bmm_picks_serving_show);
	bmm_picks_name(picks, which, name, sizeof(name));
	return control_add_dir(path, name, dir);
}

static int control_add_numbered(struct bmm_path *path, unsigned int number)
{
	const struct bmm_attribute *file = path->numbered->files;
	struct control_dir *dir;
	unsigned int i, nr = 0;
	char name[32];

	while (file[nr].attr.name)
		nr++;
	dir = control_new_dir(path, nr);
	if (!dir)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		control_set_file(dir, i, file[i].attr.name,
				 number * BMM_COLUMNS + file[i].index,
				 file[i].show);
	scnprintf(name, sizeof(name), "%s%u", path->numbered->name, number);
	return control_add_dir(path, name, dir);
}

static int control_add_dirs(struct bmm_path *path)
{
	const struct bmm_numbered *numbered = path->numbered;
	int err = control_add_reasons(path);
	unsigned int i, n;

	for (i = 0; i < BMM_PICKS && path->picks[i]; i++)
		for (n = 0; !err && n < path->picks[i]->nr; n++)
			err = control_add_pick(path, i, n);
	for (n = numbered ? numbered->first : 0;
	     !err && numbered && n <= numbered->last; n++)
		err = control_add_numbered(path, n);
	return err;
}

static void control_fill_own(struct bmm_path *path)
{
	unsigned int i, n = 0;

	for (i = 0; i < BMM_PICKS && path->picks[i]; i++) {
		struct bmm_attribute *file = &path->picks_attr[i];

		file->attr.name = path->picks[i]->name;
		file->attr.mode = 0644;
		file->show = bmm_picks_show;
		file->store = bmm_picks_store;
		file->index = i;
		path->own_attrs[n++] = &file->attr;
	}
	for (i = 0; i < BMM_EXTRAS && path->extras[i]; i++)
		path->own_attrs[n++] = &path->extras[i]->attr;
	path->own_group.attrs = path->own_attrs;
	control_fill(path->own_attrs);
}

static int control_add_files(struct bmm_path *path)
{
	const struct attribute_group *groups[] = {
		&path_group,
		&path->own_group,
		NULL,
	};
	int err;

	control_fill(path_attrs);
	control_fill_own(path);
	err = sysfs_create_groups(path->kobj, groups);
	return err ? err : control_add_dirs(path);
}

/* A holder may keep its reference: name and files are gone. */
static void control_drop(struct kobject *kobj)
{
	kobject_del(kobj);
	kobject_put(kobj);
}

/**
 * bmm_control_add() - add a path to sysfs
 * @path: the path, initialised
 *
 * Return: 0, or a negative errno with nothing left behind.
 */
int bmm_control_add(struct bmm_path *path)
{
	struct kobject *kobj = NULL;
	int err;

	INIT_LIST_HEAD(&path->dirs);
	if (!bmm_fault_alloc())
		kobj = kobject_create_and_add(path->name, root);
	if (!kobj)
		return -ENOMEM;
	WRITE_ONCE(path->kobj, kobj);
	err = bmm_fault_alloc() ? -ENOMEM : control_add_files(path);
	if (err)
		bmm_control_remove(path);
	return err;
}

/**
 * bmm_control_remove() - remove a path from sysfs
 * @path: the path; when this returns, no reader or writer is inside
 */
void bmm_control_remove(struct bmm_path *path)
{
	control_drop(path->kobj);
	control_free_dirs(path);
}

/**
 * bmm_control_init() - create /sys/kernel/bulkmm
 *
 * Return: 0 or a negative errno.
 */
int bmm_control_init(void)
{
	int err;

	if (!bmm_fault_alloc())
		root = kobject_create_and_add("bulkmm", kernel_kobj);
	if (!root)
		return -ENOMEM;
	err = bmm_fault_alloc() ? -ENOMEM :
				  sysfs_create_group(root, &root_group);
	if (err)
		control_drop(root);
	return err;
}

/** bmm_control_exit() - remove /sys/kernel/bulkmm */
void bmm_control_exit(void)
{
	control_drop(root);
}
