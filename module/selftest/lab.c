// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_lab: clock, judge and faults, independent of the module under test.
 *
 * debugfs bulkmm_lab/calls		times of memmap_init_zone_device()
 *	   bulkmm_lab/snapshot, compare, flip	struct pages, byte for byte
 *	   bulkmm_lab/limit		time that the stores alone take
 *	   bulkmm_lab/bind, unbind	device-private memory
 *	   bulkmm_lab/squat		hooks the function before bulkmm does
 *	   bulkmm_lab/kill_ftrace, hold	a machine in trouble
 *	   bulkmm_lab/refuse		makes memory hotplug fail
 *	   bulkmm_lab/zones		zones, and whether they are contiguous
 *	   bulkmm_lab/zero, zero_time	folio_zero_user(), called by hand
 *	   bulkmm_lab/zero_irq, zero_nmi	zeroed pages in interrupts
 */
#include <linux/module.h>

#include "lab.h"

static struct dentry *dir;

static int __init bmm_lab_init(void)
{
	int err;

	dir = debugfs_create_dir("bulkmm_lab", NULL);
	err = bmm_timer_init(dir);
	if (err) {
		debugfs_remove(dir);
		return err;
	}
	bmm_snapshot_init(dir);
	bmm_limit_init(dir);
	bmm_squat_init(dir);
	bmm_zero_init(dir);
	bmm_irq_init(dir);
	bmm_zones_init(dir);
	bmm_refuse_init(dir);
	bmm_private_init(dir);
	bmm_ruin_init(dir);
	return 0;
}

static void __exit bmm_lab_exit(void)
{
	debugfs_remove(dir);
	bmm_refuse_exit();
	bmm_private_exit();
	bmm_ruin_exit();
	bmm_squat_exit();
	bmm_snapshot_exit();
	bmm_timer_exit();
}

module_init(bmm_lab_init);
module_exit(bmm_lab_exit);

MODULE_DESCRIPTION("bulkmm lab: timer and struct page comparison for tests");
MODULE_AUTHOR("the bulkmm authors");
MODULE_LICENSE("GPL");
