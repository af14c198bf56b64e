/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_PATH_H
#define BMM_PATH_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/percpu.h>

#include "../core/bmm.h"
#include "hook.h"

#define BMM_OFF 0 /* the first mode of every path */

#define BMM_REASONS  8 /* most reasons a path has for a fallback */
#define BMM_BACKENDS 2 /* most operations a path has backends for */
#define BMM_EXTRAS   8 /* most files that one path alone has */

struct bmm_path;

/* A sysfs file of a path; @index tells apart those of one kind. */
struct bmm_attribute {
	struct attribute attr;
	ssize_t (*show)(struct bmm_path *path, unsigned int index, char *buf);
	ssize_t (*store)(struct bmm_path *path, unsigned int index,
			 const char *buf, size_t len);
	unsigned int index;
};

/* A sysfs file with the backends of an operation. */
struct bmm_backend_file {
	const char *name;
	enum bmm_op op;
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
 * @modes:       names of the modes, the first is "off", up to the first NULL
 * @mode:        index of the one in force; read once per call
 * @backends:    operations whose backend a user may force
 * @extras:      files that this path alone has
 * @reasons:     names of the fallback counters, up to the first NULL
 * @hits:        requests served by the range
 * @bytes:       bytes those requests wrote
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
	const char *const *modes;
	int mode;
	struct bmm_backend_file backends[BMM_BACKENDS];
	struct bmm_attribute *extras[BMM_EXTRAS];
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
	struct bmm_attribute backend_attr[BMM_BACKENDS];
	struct attribute *own_attrs[BMM_BACKENDS + BMM_EXTRAS + 1];
	struct attribute_group own_group;
};

int bmm_path_init(struct bmm_path *path, int mode);
void bmm_path_exit(struct bmm_path *path);
int bmm_path_set_mode(struct bmm_path *path, int mode);
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
