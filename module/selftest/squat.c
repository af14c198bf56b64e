// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks memmap_init_zone_device() first, as a live patch or a BPF trampoline
 * would, so that the module under test finds it busy: with a direct trampoline
 * that only returns into the original body.
 */
#include <linux/cleanup.h>
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "../compat/compat.h"
#include "lab.h"

void bmm_squat_trampoline(void);

/* clang-format off */
#ifdef CONFIG_ARM64
#define RETURN_INTO_BODY "	hint	34\n	mov	x10, x30\n" \
			 "	mov	x30, x9\n	ret	x10\n"
#else
#define RETURN_INTO_BODY ASM_ENDBR ASM_RET
#endif
asm(".pushsection .text, \"ax\", @progbits\n"
    ".type bmm_squat_trampoline, @function\n"
    ".globl bmm_squat_trampoline\n"
    "bmm_squat_trampoline:\n"
    RETURN_INTO_BODY
    ".size bmm_squat_trampoline, .-bmm_squat_trampoline\n"
    ".popsection\n");
/* clang-format on */

static DEFINE_MUTEX(lock);
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

	memset(&ops, 0, sizeof(ops)); /* see hook_reset_ops() in ../hook.c */
	synchronize_rcu_tasks();
	squatting = false;
	return err;
}

/* 1 hooks the function, 0 unhooks it. */
static int squat_write(char *text)
{
	bool want;
	int err = kstrtobool(text, &want);

	if (err)
		return err;
	guard(mutex)(&lock);
	if (want == squatting)
		return 0;
	return want ? take() : give_back();
}

static void squat_exit(void)
{
	if (squatting)
		give_back();
}

const struct bmm_lab_part bmm_lab_squat = {
	.files =
		(const struct bmm_lab_file[]){
			{ "squat", squat_write },
			{},
		},
	.exit = squat_exit,
};
