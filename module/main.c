// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/utsname.h>
#include <linux/version.h>

#include "../core/bmm.h"
#include "control.h"
#include "faults.h"
#include "prezero_bitmap.h"
#include "select.h"
#include "series.h"
#include "clear_common.h"

#define BMM_BUILT_FOR (LINUX_VERSION_CODE >> 8)

/* Each path's modes and its parameter, the mode at load. */
#define BMM_PATH(path, load, ...)                                           \
	const char *const bmm_##path##_modes[] = { __VA_ARGS__, NULL };     \
	static char *path##_at_load = load;                                 \
	module_param_named(path, path##_at_load, charp, 0444);              \
	MODULE_PARM_DESC(path, #path                                        \
			 ": mode at load: " #__VA_ARGS__ " (default: " load \
			 "); later /sys/kernel/bulkmm/" #path "/mode");
#include "paths.def"

#define BMM_PATH(path, ...) &path##_at_load,
static char *const *const modes_at_load[BMM_PATHS] = {
#include "paths.def"
};

/*
 * Removes what there is: sysfs before everything else, so that nobody can
 * switch on a path that is going away; then the last path first, as it may need
 * an earlier one.
 */
static void bulkmm_leave(void)
{
	size_t i;

	for (i = 0; i < BMM_PATHS; i++)
		bmm_control_remove(bmm_paths[i]);
	bmm_control_exit();
	while (i--)
		bmm_path_exit(bmm_paths[i]);
	bmm_known_exit();
}

static int __init bulkmm_add(void)
{
	int err = bmm_control_init() ?: bmm_known_init();
	size_t i;

	for (i = 0; !err && i < BMM_PATHS; i++) {
		err = bmm_path_init(bmm_paths[i]);
		if (!err)
			err = bmm_control_add(bmm_paths[i]);
	}
	return err;
}

static int __init bulkmm_parse(int modes[])
{
	size_t i;

	for (i = 0; i < BMM_PATHS; i++) {
		modes[i] = bmm_parse_mode(bmm_paths[i], *modes_at_load[i]);
		if (modes[i] < 0)
			return modes[i];
	}
	return 0;
}

/*
 * A kernel that skips the comparison of versions (modprobe --force;
 * distributions that hand modules on) loads what was built for another series:
 * sizes, offsets and flags of that series are compiled in.
 */
static int __init bulkmm_check_series(void)
{
	const char *release = bmm_fault_symbol(init_utsname()->release);

	if (bmm_series(release) == BMM_BUILT_FOR)
		return 0;
	pr_err("built for Linux %u.%u, and this is %s: build it for this kernel\n",
	       BMM_BUILT_FOR >> 8, BMM_BUILT_FOR & 255, release);
	return -ENOEXEC;
}

static int __init bulkmm_init(void)
{
	int modes[BMM_PATHS];
	int err;

	err = bulkmm_check_series() ?: bulkmm_parse(modes);
	if (err)
		return err;
	bmm_select_init();
	bmm_zero_init();
	err = bulkmm_add();
	if (err)
		bulkmm_leave();
	else
		bmm_path_start(modes);
	return err;
}

/* No path is on: one that is would hold the module. */
static void __exit bulkmm_exit(void)
{
	bulkmm_leave();
}

module_init(bulkmm_init);
module_exit(bulkmm_exit);

MODULE_DESCRIPTION("Initialise, clear and map memory in ranges");
MODULE_AUTHOR("the bulkmm authors");
MODULE_VERSION(BMM_VERSION);
MODULE_LICENSE("GPL");
