// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages cleared past the caches, by kernels with upstream/'s series clear.
 *
 * debugfs bulkmm_lab/nt_clears: writing the name of a program begins to count
 * those that it has cleared; reading returns how many. Events of kprobes refuse
 * the function, which is no function of C.
 */
#include <linux/atomic.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/version.h>

#include "lab.h"

static char nt_program[TASK_COMM_LEN];
static atomic_long_t nt_pages;

static int nt_clears_write(char *text)
{
	if (strscpy(nt_program, text, sizeof(nt_program)) < 0)
		return -E2BIG;
	atomic_long_set(&nt_pages, 0);
	return 0;
}

static int nt_clears_show(struct seq_file *m)
{
	seq_printf(m, "pages=%ld\n", atomic_long_read(&nt_pages));
	return 0;
}

/* The second argument is the number of pages. The return is of no interest. */
static int nt_clears_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!strcmp(current->comm, nt_program))
		atomic_long_add(regs_get_kernel_argument(regs, 1) & U32_MAX,
				&nt_pages);
	return 1;
}

static struct kretprobe nt_clears_probe = {
	.entry_handler = nt_clears_entry,
	.kp.symbol_name = LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0) ?
				  "clear_pages_nt" :
				  "__clear_pages_nt",
};

BMM_LAB_PART(nt_clears, &nt_clears_probe, NULL, NULL,
	     { "nt_clears", .write = nt_clears_write, .show = nt_clears_show });
