// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading. */
#include <linux/module.h>

#include "control.h"
#include "memmap.h"

#define BMM_VERSION "0.1.0"

static char *memmap = "on";
module_param(memmap, charp, 0444);
MODULE_PARM_DESC(
	memmap,
	"memmap: mode at load, off or on (default: on); later /sys/kernel/bulkmm/memmap/mode");

static int __init bulkmm_init(void)
{
	int mode = bmm_parse_mode(memmap);
	int err;

	if (mode < 0)
		return mode;
	err = bmm_control_init();
	if (err)
		return err;
	err = bmm_path_init(&bmm_memmap, mode);
	if (err)
		goto control;
	err = bmm_control_add(&bmm_memmap);
	if (err)
		goto path;
	return 0;
path:
	bmm_path_exit(&bmm_memmap);
control:
	bmm_control_exit();
	return err;
}

/* Settings first, so that nobody switches a path on that is going away. */
static void __exit bulkmm_exit(void)
{
	bmm_control_remove(&bmm_memmap);
	bmm_path_exit(&bmm_memmap);
	bmm_control_exit();
}

module_init(bulkmm_init);
module_exit(bulkmm_exit);

MODULE_DESCRIPTION("Bulk memory management by the range instead of by the page");
MODULE_AUTHOR("the bulkmm authors");
MODULE_VERSION(BMM_VERSION);
MODULE_LICENSE("GPL");
