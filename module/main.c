// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "alloc.h"
#include "clear.h"
#include "control.h"
#include "memmap.h"
#include "supported.h"
#include "vmap.h"

#define BMM_VERSION "0.1.0"

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

/* vmap() has the name already. */
static char *vmap_mode = "off";
module_param_named(vmap, vmap_mode, charp, 0444);
MODULE_PARM_DESC(
	vmap,
	"vmap: mode at load, off, pte or block (default: off); later /sys/kernel/bulkmm/vmap/mode");

/* The way out of a machine that does not boot with the module. */
static bool inert;
module_param(inert, bool, 0444);
MODULE_PARM_DESC(
	inert,
	"inert: load, but take no function over, ever (default: N); at boot: bulkmm.inert=1");

static const struct {
	struct bmm_path *path;
	char **mode;
} paths[] = {
	{ &bmm_memmap, &memmap },
	{ &bmm_clear_path, &clear },
	{ &bmm_alloc, &alloc },
	{ &bmm_vmap, &vmap_mode },
};

static int add(struct bmm_path *path, int mode)
{
	int err = bmm_path_init(path, mode);

	if (err)
		return err;
	err = bmm_control_add(path);
	if (err)
		bmm_path_exit(path);
	return err;
}

/* Settings first, so that nobody switches a path on that is going away. */
static void remove(struct bmm_path *path)
{
	bmm_control_remove(path);
	bmm_path_exit(path);
}

static int __init bulkmm_init(void)
{
	int modes[ARRAY_SIZE(paths)];
	size_t i;
	int err;

	err = bmm_supported();
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		modes[i] = bmm_parse_mode(paths[i].path, *paths[i].mode);
		if (modes[i] < 0)
			return modes[i];
	}
	if (inert) {
		bmm_path_make_inert();
		pr_notice(
			"inert: no function is taken over until the module is loaded without it\n");
	}
	err = bmm_control_init();
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		err = add(paths[i].path, modes[i]);
		if (err)
			goto undo;
	}
	return 0;
undo:
	while (i--)
		remove(paths[i].path);
	bmm_control_exit();
	return err;
}

static void __exit bulkmm_exit(void)
{
	size_t i = ARRAY_SIZE(paths);

	while (i--)
		remove(paths[i].path);
	bmm_control_exit();
}

module_init(bulkmm_init);
module_exit(bulkmm_exit);

MODULE_DESCRIPTION("Bulk memory management by the range instead of by the page");
MODULE_AUTHOR("the bulkmm authors");
MODULE_VERSION(BMM_VERSION);
MODULE_LICENSE("GPL");
