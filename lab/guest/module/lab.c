// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_lab: clock, judge and faults, independent of the module under test.
 *
 * Its files are in debugfs, bulkmm_lab/: each part says what its own do.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "lab.h"

static const struct bmm_lab_part *const parts[] = {
	&bmm_lab_timer,	  &bmm_lab_snapshot,  &bmm_lab_stamped, &bmm_lab_limit,
	&bmm_lab_squat,	  &bmm_lab_zero,      &bmm_lab_irq,	&bmm_lab_zones,
	&bmm_lab_walk,	  &bmm_lab_refuse,    &bmm_lab_poison,
#ifdef CONFIG_DEVICE_PRIVATE
	&bmm_lab_private,
#endif
	&bmm_lab_ruin,	  &bmm_lab_nt_clears,
};

static bool ready[ARRAY_SIZE(parts)];
static struct dentry *dir;

/* Held by whoever uses a file that is not parallel. */
static DEFINE_MUTEX(lock);

static int lab_show(struct seq_file *m, void *unused)
{
	const struct bmm_lab_file *of = m->private;

	guard(mutex)(&lock);
	return of->show ? of->show(m) : -EINVAL;
}

static int lab_open(struct inode *inode, struct file *file)
{
	return single_open(file, lab_show, inode->i_private);
}

static int lab_obey(const struct bmm_lab_file *of, char *text)
{
	unsigned long number;

	if (of->write)
		return of->write(text);
	return kstrtoul(text, 0, &number) ?: of->number(number);
}

static ssize_t lab_write(struct file *file, const char __user *buf, size_t len,
			 loff_t *pos)
{
	const struct bmm_lab_file *of = file_inode(file)->i_private;
	char text[64] = "";
	int err = 0;

	if ((!of->write && !of->number) || len >= sizeof(text) ||
	    copy_from_user(text, buf, len))
		return -EINVAL;
	if (of->parallel)
		err = lab_obey(of, strim(text));
	else
		scoped_guard(mutex, &lock)
			err = lab_obey(of, strim(text));
	return err ?: len;
}

static const struct file_operations lab_fops = {
	.owner = THIS_MODULE,
	.open = lab_open,
	.read = seq_read,
	.write = lab_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void lab_add(const struct bmm_lab_file *of)
{
	for (; of->name; of++)
		debugfs_create_file(of->name,
				    (of->show ? 0400 : 0) |
					    (of->write || of->number ? 0200 : 0),
				    dir, (void *)of, &lab_fops);
}

static int lab_begin(const struct bmm_lab_part *part)
{
	int err = part->init ? part->init() : 0;

	if (err || !part->probe)
		return err;
	err = register_kretprobe(part->probe);
	if (err && part->exit)
		part->exit();
	return err;
}

static void lab_end(const struct bmm_lab_part *part)
{
	if (part->probe)
		unregister_kretprobe(part->probe);
	if (part->exit)
		part->exit();
}

static int __init bmm_lab_init(void)
{
	size_t i;

	dir = debugfs_create_dir("bulkmm_lab", NULL);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		ready[i] = !lab_begin(parts[i]);
		if (ready[i])
			lab_add(parts[i]->files);
	}
	return 0;
}

static void __exit bmm_lab_exit(void)
{
	size_t i;

	debugfs_remove(dir);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (ready[i])
			lab_end(parts[i]);
}

module_init(bmm_lab_init);
module_exit(bmm_lab_exit);

MODULE_DESCRIPTION("bulkmm lab: timer and struct page comparison for tests");
MODULE_LICENSE("GPL");
