/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_PATH_H
#define BMM_PATH_H

#include <linux/kobject.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "hook.h"

#define BMM_OFF 0 /* the first mode of every path */

/* The others of clear, alloc and copy, as in paths.def. */
enum bmm_store_mode {
	BMM_AUTO = 1, /* of copy: "on" */
	BMM_CACHED,
	BMM_STREAMING,
};

#define BMM_HOOKS    4	/* most functions a path hooks */
#define BMM_COUNTERS 16 /* most counters of a path */
#define BMM_FILES    8	/* most files specific to a path */

struct bmm_path;

/*
 * Counted per CPU, so that counting costs no shared cache line, and shown as
 * the lines of "stats".
 */
enum bmm_counter {
	BMM_INFLIGHT, /* calls inside the handler */
	BMM_HITS,     /* requests served in ranges */
	BMM_BYTES,    /* bytes those requests wrote, or mapped */
	BMM_NS,	      /* time they took, the kernel's own part included */
	BMM_OWN,      /* the first one specific to a path */
};

struct bmm_counters {
	s64 n[BMM_COUNTERS];
};

/**
 * struct bmm_path - one family of kernel functions
 * @name:        directory in /sys/kernel/bulkmm
 * @prepare:     checks and sets up what paths.def cannot say before its hooks
 *               are attached; 0 or a negative errno; NULL: nothing
 * @prepare_symbol: the symbol that this is about; NULL: the first hook's
 * @hooks:       the functions hooked, up to the first without a symbol; the
 *               path needs the first, and makes do with the others that attach
 * @modes:       names of the modes, the first is "off", up to the first NULL
 * @mode:        index of the current mode; read once per call
 * @files:       attributes specific to this path, up to the first NULL
 * @needs_hooks_of: a path whose hooks it needs as well: they are attached, and
 *               calls reach their handlers, while either is on; NULL: none
 * @needs_all_hooks: not only the first, and every call to reach them
 * @on_switch:   called when it is on, after all calls go to its handlers, and
 *               when it goes off, before any bypasses them, with bmm_path_mutex
 *               held; NULL: no matter
 * @stop:        of a path with @on_switch: serves nothing from now on, until
 *               @on_switch has seen it off and on again; waits for nobody, and
 *               may come at any time
 * @names:       of its counters, "fallback_REASON" among them; NULL: not counted
 * @counters:    enum bmm_counter, and the path's own
 * @disable:     work item that switches it off, under the lock
 * @disable_due: that is still to be done
 * @waits_for:   what detaching a hook waits for
 * @kobj:        its directory; the kobject core can free it by itself: others
 *               may hold it for longer than the module exists
 */
struct bmm_path {
	const char *name;
	int (*prepare)(void);
	const char *prepare_symbol;
	struct bmm_hook hooks[BMM_HOOKS];
	const char *const *modes;
	int mode;
	const struct attribute *files[BMM_FILES + 1];
	struct bmm_path *needs_hooks_of;
	bool needs_all_hooks;
	void (*on_switch)(bool on);
	void (*stop)(void);
	const char *names[BMM_COUNTERS];
	struct bmm_counters __percpu *counters;

	struct work_struct disable;
	bool disable_due;
	const char *waits_for;

	struct kobject *kobj;
};

/* All hooks of a path, in order. */
#define bmm_for_each_hook(hook, path) \
	for ((hook) = (path)->hooks;  \
	     (hook) < (path)->hooks + BMM_HOOKS && (hook)->symbol; (hook)++)

#define BMM_PATH(name, ...)                            \
	extern const char *const bmm_##name##_modes[]; \
	extern struct bmm_path bmm_##name##_path;
#include "paths.def"

enum {
#define BMM_PATH(name, ...) BMM_PATH_INDEX_##name,
#include "paths.def"
	BMM_PATHS
};

/* All of them, in the order of paths.def. */
extern struct bmm_path *const bmm_paths[BMM_PATHS];

/* The members of a struct bmm_path that follow from its name in paths.def. */
#define BMM_PATH_NAMED(path)                                          \
	.name = #path, .modes = bmm_##path##_modes,                   \
	.names[BMM_INFLIGHT] = "inflight", .names[BMM_HITS] = "hits", \
	.names[BMM_BYTES] = "bytes"

int bmm_path_init(struct bmm_path *path);
void bmm_path_exit(struct bmm_path *path);
void bmm_path_start(const int modes[]);
int bmm_path_set_mode(struct bmm_path *path, int mode);
struct bmm_path *bmm_path_find(const struct kobject *kobj);
s64 bmm_path_sum(const struct bmm_path *path, unsigned int counter);

static inline void bmm_path_count(struct bmm_path *path, unsigned int counter,
				  s64 n)
{
	this_cpu_add(path->counters->n[counter], n);
}

/*
 * Brackets of a handler that can sleep. Between them the module's text cannot
 * go away; what comes before the first and after the second, and a handler that
 * cannot sleep, is covered by RCU tasks.
 */
static inline void bmm_path_enter(struct bmm_path *path)
{
	bmm_path_count(path, BMM_INFLIGHT, 1);
}

static inline void bmm_path_leave(struct bmm_path *path)
{
	bmm_path_count(path, BMM_INFLIGHT, -1);
}

/* @ns: 0 if it was not timed */
static inline void bmm_path_served(struct bmm_path *path, u64 bytes, u64 ns)
{
	bmm_path_count(path, BMM_HITS, 1);
	bmm_path_count(path, BMM_BYTES, bytes);
	if (ns)
		bmm_path_count(path, BMM_NS, ns);
}

/* The reason of a fallback, by its counter. */
static inline const char *bmm_path_reason(const struct bmm_path *path,
					  unsigned int fallback)
{
	return path->names[fallback] + strlen("fallback_");
}

#endif
