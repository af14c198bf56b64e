/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * picks.h - the picks of an operation, and their sysfs files, which show them
 * and force a backend
 */
#ifndef BMM_PICKS_H
#define BMM_PICKS_H

#include <linux/mutex.h>
#include <linux/types.h>

#include "../core/turn.h"

struct bmm_path;

/**
 * struct bmm_picks - all picks of one operation of a path
 * @name:    name of the file
 * @op:      the operation
 * @nr:      number of picks
 * @pick:    one for each kind of memory or extent that is measured separately
 * @forced:  the backend that serves instead of all of them, or NULL; written
 *           under bmm_picks_lock
 * @label:   writes one word that says what a pick is for
 * @changed: called after a write to the file, under bmm_picks_lock; or NULL
 */
struct bmm_picks {
	const char *name;
	enum bmm_op op;
	unsigned int nr;
	struct bmm_pick *pick;
	const struct bmm_backend *forced;
	void (*label)(unsigned int which, char *buf, size_t size);
	void (*changed)(const struct bmm_picks *picks);
};

extern struct mutex bmm_picks_lock;

/* Pick @which of a path's operation @index; add a candidate's number. */
static inline unsigned int bmm_picks_index(unsigned int index,
					   unsigned int which)
{
	return (index << 8 | which) * BMM_CANDIDATES;
}

void bmm_picks_log(const struct bmm_path *path, const struct bmm_picks *picks,
		   unsigned int which);
void bmm_picks_name(const struct bmm_picks *picks, unsigned int which,
		    char *buf, size_t size);
ssize_t bmm_picks_serving_show(struct bmm_path *path, unsigned int index,
			       char *buf);
ssize_t bmm_picks_rate_show(struct bmm_path *path, unsigned int index,
			    char *buf);
ssize_t bmm_picks_show(struct bmm_path *path, unsigned int index, char *buf);
ssize_t bmm_picks_store(struct bmm_path *path, unsigned int index,
			const char *buf, size_t len);

#endif
