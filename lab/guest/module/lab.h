/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_LAB_H
#define BMM_LAB_H

#include <linux/kprobes.h>
#include <linux/seq_file.h>

/**
 * struct bmm_lab_file - a file in debugfs
 * @name:     its name
 * @write:    gets a line, without its end; 0 or a negative errno
 * @number:   the same, of a line that is a number
 * @show:     what reading returns
 * @parallel: may be written by several at once; else one at a time uses any
 *            file
 */
struct bmm_lab_file {
	const char *name;
	int (*write)(char *text);
	int (*number)(unsigned long number);
	int (*show)(struct seq_file *m);
	bool parallel;
};

/**
 * struct bmm_lab_part - what belongs together
 * @files: up to the first without a name
 * @probe: registered while it is there, or NULL
 * @init:  if it, or the probe, fails, on a kernel that lacks something, there
 *         are no files
 * @exit:  called once nobody uses them
 */
struct bmm_lab_part {
	const struct bmm_lab_file *files;
	struct kretprobe *probe;
	int (*init)(void);
	void (*exit)(void);
};

/* The further arguments are its files. */
#define BMM_LAB_PART(_name, _probe, _init, _exit, ...)                     \
	const struct bmm_lab_part bmm_lab_##_name = {                      \
		.files = (const struct bmm_lab_file[]){ __VA_ARGS__, {} }, \
		.probe = _probe,                                           \
		.init = _init,                                             \
		.exit = _exit,                                             \
	}

extern const struct bmm_lab_part bmm_lab_timer, bmm_lab_snapshot,
	bmm_lab_stamped, bmm_lab_limit, bmm_lab_squat, bmm_lab_zero,
	bmm_lab_irq, bmm_lab_zones, bmm_lab_walk, bmm_lab_refuse,
	bmm_lab_private, bmm_lab_ruin, bmm_lab_poison, bmm_lab_nt_clears;

#endif
