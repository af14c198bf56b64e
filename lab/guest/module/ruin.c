// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trouble on a machine that the module has to survive.
 *
 * debugfs bulkmm_lab/kill_ftrace: shuts ftrace down for good, as ftrace does
 * itself when it finds something wrong.
 *
 * debugfs bulkmm_lab/hold: takes a reference to the kobject of a sysfs
 * directory, given its path; an empty line drops it.
 *
 * debugfs bulkmm_lab/squat: 1 hooks memmap_init_zone_device(), 0 unhooks it.
 */
#include <linux/ftrace.h>
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/static_call.h>

#include "compat.h"
#include "../../../module/symbols.c"
#include "lab.h"

DEFINE_STATIC_CALL_NULL(kill_ftrace, ftrace_kill);

static struct kobject *held;

static int kill_write(char *text)
{
	long entry = bmm_symbol_entry("ftrace_kill");

	if (IS_ERR_VALUE(entry))
		return entry;
	static_call_update(kill_ftrace, (void *)entry);
	static_call(kill_ftrace)();
	return 0;
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

static void drop(void)
{
	kobject_put(held);
	held = NULL;
}

static int hold_write(char *name)
{
	drop();
	return *name ? hold(name) : 0;
}

BMM_LAB_PART(ruin, NULL, NULL, drop, { "kill_ftrace", .write = kill_write },
	     { "hold", .write = hold_write });

/*
 * Hooks memmap_init_zone_device() first, as a live patch or a BPF trampoline
 * would, so that the module under test finds it busy: with a direct trampoline
 * that only returns into the original body.
 */
#ifdef CONFIG_ARM64
#define RETURN_INTO_BODY            \
	"	hint	34\n	mov	x10, x30\n" \
	"	mov	x30, x9\n	ret	x10\n"
#else
#define RETURN_INTO_BODY ASM_ENDBR ASM_RET
#endif
BMM_ASM_FUNCTION(bmm_squat_trampoline, RETURN_INTO_BODY);

static struct ftrace_ops ops;
static bool squatting;

static int take(void)
{
	unsigned long trampoline = (unsigned long)bmm_squat_trampoline;
	char symbol[] = "memmap_init_zone_device";
	int err;

	err = ftrace_set_filter(&ops, symbol, strlen(symbol), 1);
	if (!err)
		err = register_ftrace_direct(&ops, trampoline);
	squatting = !err;
	return err;
}

static int give_back(void)
{
	unsigned long trampoline = (unsigned long)bmm_squat_trampoline;
	int err = unregister_ftrace_direct(&ops, trampoline, true);

	memset(&ops, 0, sizeof(ops)); /* see hook_reset_ops() in hook.c */
	synchronize_rcu_tasks();
	squatting = false;
	return err;
}

static int squat_write(unsigned long want)
{
	if (!!want == squatting)
		return 0;
	return want ? take() : give_back();
}

static void squat_exit(void)
{
	squat_write(0);
}

BMM_LAB_PART(squat, NULL, NULL, squat_exit, { "squat", .number = squat_write });
