/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_PATH_H
#define BMM_PATH_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/percpu.h>

#include "../core/bmm.h"
#include "hook.h"

enum bmm_mode {
	BMM_OFF,
	BMM_ON,
	BMM_MODES
};

#define BMM_REASONS 8 /* most reasons a path has for a fallback */

struct bmm_path;

/* A sysfs file of a path; @reason is used by the fallback counters alone. */
struct bmm_attribute {
	struct attribute attr;
	ssize_t (*show)(struct bmm_path *path, unsigned int reason, char *buf);
	ssize_t (*store)(struct bmm_path *path, const char *buf, size_t len);
	unsigned int reason;
};

/**
 * struct bmm_path - one family of kernel functions served by the range
 * @name:        directory in /sys/kernel/bulkmm
 * @prepare:     finds what else the path needs before its hook is attached;
 *               0, or a negative errno and the symbol it is about
 * @hook:        the function taken over
 * @about:       the symbol that the hook's state is about
 * @on_from:     smallest request that enters the handler while on
 * @off_from:    the same while off: BMM_HOOK_PASS, or 0 where requests are so
 *               rare that even those left to the original are counted
 * @mode:        enum bmm_mode; read once per call
 * @op:          what its backend is chosen for
 * @reasons:     names of the fallback counters, up to the first NULL
 * @hits:        requests served by the range
 * @bytes:       bytes those requests stamped
 * @ns:          time they took, the kernel's own part included
 * @fallbacks:   requests left to the original, by reason
 * @inflight:    calls inside the handler, summed over CPUs
 */
struct bmm_path {
	const char *name;
	int (*prepare)(const char **symbol);
	struct bmm_hook hook;
	const char *about;
	unsigned long on_from;
	unsigned long off_from;
	enum bmm_mode mode;
	enum bmm_op op;
	const char *reasons[BMM_REASONS];
	atomic64_t hits;
	atomic64_t bytes;
	atomic64_t ns;
	atomic64_t fallbacks[BMM_REASONS];
	int __percpu *inflight;

	struct kobject kobj;
	struct bmm_attribute reason_attr[BMM_REASONS];
	struct attribute *reason_attrs[BMM_REASONS + 1];
	struct attribute_group reason_group;
};

int bmm_path_init(struct bmm_path *path, enum bmm_mode mode);
void bmm_path_exit(struct bmm_path *path);
int bmm_path_set_mode(struct bmm_path *path, enum bmm_mode mode);
long bmm_path_inflight(const struct bmm_path *path);

/*
 * Brackets of a handler. Between them the module's text cannot go away; what
 * lies before the first and after the second is covered by RCU-tasks.
 */
static inline void bmm_path_enter(struct bmm_path *path)
{
	this_cpu_inc(*path->inflight);
}

static inline void bmm_path_leave(struct bmm_path *path)
{
	this_cpu_dec(*path->inflight);
}

static inline void bmm_path_fallback(struct bmm_path *path, unsigned int reason)
{
	atomic64_inc(&path->fallbacks[reason]);
}

#endif
