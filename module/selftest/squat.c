// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes memmap_init_zone_device() first, as a live patch or a BPF trampoline
 * would, so that the module under test finds it busy: a direct trampoline
 * that does nothing but return into the original body.
 */
#include <linux/ftrace.h>
#include <linux/module.h>

#include "lab.h"

static bool squat;
module_param(squat, bool, 0444);
MODULE_PARM_DESC(
	squat,
	"take memmap_init_zone_device() by a direct trampoline of our own (default: no)");

void bmm_squat_trampoline(void);

/* clang-format off */
asm(".pushsection .text, \"ax\", @progbits\n"
    ".type bmm_squat_trampoline, @function\n"
    ".globl bmm_squat_trampoline\n"
    "bmm_squat_trampoline:\n"
    ASM_ENDBR
    ASM_RET
    ".size bmm_squat_trampoline, .-bmm_squat_trampoline\n"
    ".popsection\n");
/* clang-format on */

static struct ftrace_ops ops;

int bmm_squat_init(void)
{
	char symbol[] = "memmap_init_zone_device";
	int err;

	if (!squat)
		return 0;
	err = ftrace_set_filter(&ops, symbol, strlen(symbol), 1);
	if (err)
		return err;
	return register_ftrace_direct(&ops, (unsigned long)bmm_squat_trampoline);
}

void bmm_squat_exit(void)
{
	if (!squat)
		return;
	unregister_ftrace_direct(&ops, (unsigned long)bmm_squat_trampoline,
				 true);
	synchronize_rcu_tasks();
}
