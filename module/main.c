// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "../core/bmm.h"
#include "control.h"
#include "select.h"
#include "zero.h"

static char *memmap = "on";
module_param(memmap, charp, 0444);
MODULE_PARM_DESC(
	memmap,
	"memmap: mode at load, off or on (default: on); later /sys/kernel/bulkmm/memmap/mode");

static char *clear = "off";
module_param(clear, charp, 0444);
MODULE_PARM_DESC(
	clear,
	"clear: mode at load, off, auto, cached or streaming (default: off); later /sys/kernel/bulkmm/clear/mode");

static char *alloc = "off";
module_param(alloc, charp, 0444);
MODULE_PARM_DESC(
	alloc,
	"alloc: mode at load, off, auto, cached or streaming (default: off); later /sys/kernel/bulkmm/alloc/mode");

/* vmap() already has the name. */
static char *vmap_mode = "off";
module_param_named(vmap, vmap_mode, charp, 0444);
MODULE_PARM_DESC(
	vmap,
	"vmap: mode at load, off, pte or block (default: off); later /sys/kernel/bulkmm/vmap/mode");

static char *hotplug = "on";
module_param(hotplug, charp, 0444);
MODULE_PARM_DESC(
	hotplug,
	"hotplug: mode at load, off or on (default: on); later /sys/kernel/bulkmm/hotplug/mode");

static struct bmm_path *const paths[] = {
	&bmm_memmap, &bmm_clear_path, &bmm_alloc, &bmm_vmap, &bmm_hotplug,
};

/* the mode at load of each */
static char *const *const asked[] = { &memmap, &clear, &alloc, &vmap_mode,
				      &hotplug };
static_assert(ARRAY_SIZE(asked) == ARRAY_SIZE(paths));

static int bulkmm_add(struct bmm_path *path)
{
	int err = bmm_path_init(path);

	if (err)
		return err;
	err = bmm_control_add(path);
	if (err)
		bmm_path_exit(path);
	return err;
}

/*
 * Removes the first @n paths: sysfs before everything else, so that nobody can
 * switch on a path that is going away.
 */
static void bulkmm_leave(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		bmm_control_remove(paths[i]);
	bmm_control_exit();
	for (i = 0; i < n; i++)
		bmm_path_exit(paths[i]);
}

static int __init bulkmm_add_all(void)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		err = bulkmm_add(paths[i]);
		if (err) {
			bulkmm_leave(i);
			return err;
		}
	}
	return 0;
}

static int __init bulkmm_parse(int modes[])
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		modes[i] = bmm_parse_mode(paths[i], *asked[i]);
		if (modes[i] < 0)
			return modes[i];
	}
	return 0;
}

static int __init bulkmm_init(void)
{
	int modes[ARRAY_SIZE(paths)];
	int err;

	err = bulkmm_parse(modes);
	if (err)
		return err;
	err = bmm_control_init();
	if (err)
		return err;
	bmm_select_init();
	bmm_zero_init();
	err = bulkmm_add_all();
	if (err)
		return err;
	bmm_path_start(paths, modes, ARRAY_SIZE(paths));
	return 0;
}

/* No path is on: one that is would hold the module. */
static void __exit bulkmm_exit(void)
{
	bulkmm_leave(ARRAY_SIZE(paths));
}

module_init(bulkmm_init);
module_exit(bulkmm_exit);

MODULE_DESCRIPTION("Initialise, clear and map memory in ranges");
MODULE_AUTHOR("the bulkmm authors");
MODULE_VERSION(BMM_VERSION);
MODULE_LICENSE("GPL");
