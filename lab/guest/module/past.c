// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages cleared past the caches, by kernels with upstream/'s series clear.
 *
 * debugfs bulkmm_lab/past: writing the name of a program begins to count those
 * that it has cleared; reading returns how many. Events of kprobes refuse the
 * function, which is no function of C.
 */
#include <linux/atomic.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/version.h>

#include "lab.h"

static char past_program[TASK_COMM_LEN];
static atomic_long_t past_pages;

static int past_write(char *text)
{
	if (strscpy(past_program, text, sizeof(past_program)) < 0)
		return -E2BIG;
	atomic_long_set(&past_pages, 0);
	return 0;
}

static int past_show(struct seq_file *m)
{
	seq_printf(m, "pages=%ld\n", atomic_long_read(&past_pages));
	return 0;
}

/* The second argument is the number of pages. The return is of no interest. */
static int past_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!strcmp(current->comm, past_program))
		atomic_long_add(regs_get_kernel_argument(regs, 1) & U32_MAX,
				&past_pages);
	return 1;
}

static struct kretprobe past_probe = {
	.entry_handler = past_entry,
	.kp.symbol_name = LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0) ?
				  "clear_pages_nt" :
				  "__clear_pages_nt",
};

BMM_LAB_PART(past, &past_probe, NULL, NULL,
	     { "past", .write = past_write, .show = past_show });
