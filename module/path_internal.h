/* SPDX-License-Identifier: GPL-2.0-only */
/* path_internal.h - shared by path.c, path_prepare.c and path_detach.c */
#ifndef BMM_PATH_INTERNAL_H
#define BMM_PATH_INTERNAL_H

#include <linux/mutex.h>
#include <linux/wait.h>

#include "path.h"

#define bmm_for_each_path(path)                         \
	for (struct bmm_path *const *entry = bmm_paths; \
	     entry < bmm_paths + BMM_PATHS && ((path) = *entry); entry++)

/*
 * Serialises attaching, and deciding to detach, for all paths. Never held while
 * a hook is detached; attaching waits for others who change ftrace.
 */
extern struct mutex bmm_path_mutex;

/* Woken whenever a path or a hook has settled. */
extern struct wait_queue_head bmm_path_settled;

/* path_prepare.c */
int bmm_path_prepare(const struct bmm_path *path, const char **err_subject);

/* path_detach.c */
bool bmm_path_has_hook(const struct bmm_path *path, enum bmm_hook_state state);
void bmm_path_detach_work(struct work_struct *work);
int bmm_path_lock(struct bmm_path *path);
bool bmm_path_matches(const struct bmm_path *candidate,
		      const struct bmm_path *path);
int bmm_path_wait_off(struct bmm_path *path);

#endif
