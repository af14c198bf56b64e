// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_lab: clock, judge and faults, independent of the module under test.
 *
 * debugfs bulkmm_lab/calls		times of memmap_init_zone_device()
 *	   bulkmm_lab/snapshot, compare, flip	struct pages, byte for byte
 *	   bulkmm_lab/break_stamped	breaks a struct page after stamping
 *	   bulkmm_lab/limit		time that the stores alone take
 *	   bulkmm_lab/bind, unbind	device-private memory
 *	   bulkmm_lab/squat		hooks the function before bulkmm does
 *	   bulkmm_lab/kill_ftrace, hold	a machine in trouble
 *	   bulkmm_lab/hold_walk		holds CPUs inside ftrace
 *	   bulkmm_lab/refuse		makes memory hotplug fail
 *	   bulkmm_lab/poison		a page that copying finds broken
 *	   bulkmm_lab/zones		zones, and whether they are contiguous
 *	   bulkmm_lab/zero, zero_time	folio_zero_user(), called by hand
 *	   bulkmm_lab/zero_irq, zero_nmi	zeroed pages in interrupts
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/string.h>

#include "lab.h"

static const struct bmm_lab_part *const parts[] = {
	&bmm_lab_timer,	  &bmm_lab_snapshot, &bmm_lab_stamped, &bmm_lab_limit,
	&bmm_lab_squat,	  &bmm_lab_zero,     &bmm_lab_irq,     &bmm_lab_zones,
	&bmm_lab_walk,	  &bmm_lab_refuse,   &bmm_lab_poison,
#ifdef CONFIG_DEVICE_PRIVATE
	&bmm_lab_private,
#endif
	&bmm_lab_ruin,
};

static bool ready[ARRAY_SIZE(parts)];
static struct dentry *dir;

static int lab_show(struct seq_file *m, void *unused)
{
	const struct bmm_lab_file *of = m->private;

	return of->show ? of->show(m) : -EINVAL;
}

static int lab_open(struct inode *inode, struct file *file)
{
	return single_open(file, lab_show, inode->i_private);
}

static ssize_t lab_write(struct file *file, const char __user *buf, size_t len,
			 loff_t *pos)
{
	const struct bmm_lab_file *of = file_inode(file)->i_private;
	char text[64] = "";
	int err;

	if (!of->write || len >= sizeof(text) || copy_from_user(text, buf, len))
		return -EINVAL;
	err = of->write(strim(text));
	return err ? err : len;
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
					    (of->write ? 0200 : 0),
				    dir, (void *)of, &lab_fops);
}

static int __init bmm_lab_init(void)
{
	size_t i;

	dir = debugfs_create_dir("bulkmm_lab", NULL);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		ready[i] = !parts[i]->init || !parts[i]->init();
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
		if (ready[i] && parts[i]->exit)
			parts[i]->exit();
}

module_init(bmm_lab_init);
module_exit(bmm_lab_exit);

MODULE_DESCRIPTION("bulkmm lab: timer and struct page comparison for tests");
MODULE_AUTHOR("the bulkmm authors");
MODULE_LICENSE("GPL");
