// SPDX-License-Identifier: GPL-2.0-only
/* Backends in sysfs and in the log: show what was picked, force another. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "path.h"
#include "picks.h"

#define LINE 224 /* most bytes of a line */

/* Serialises forcing with the consequences of a decision. */
DEFINE_MUTEX(bmm_picks_lock);

/* "LABEL: generic [movdir64b=37.8] movnti=36.1", cut to the buffer. */
static void picks_line(const struct bmm_picks *picks, unsigned int which,
		       char *buf, size_t size)
{
	size_t at;

	picks->label(which, buf, size);
	at = strlen(buf);
	at += scnprintf(buf + at, size - at, ": ");
	bmm_pick_list(&picks->pick[which], picks->op, READ_ONCE(picks->forced),
		      buf + at, size - at);
}

/**
 * bmm_picks_log() - log what was picked, with the figures
 * @path:  the path of the pick
 * @picks: the operation's picks
 * @which: the pick that was decided
 */
void bmm_picks_log(const struct bmm_path *path, const struct bmm_picks *picks,
		   unsigned int which)
{
	char line[LINE];

	picks_line(picks, which, line, sizeof(line));
	pr_info("%s: %s: %s\n", path->name, picks->name, line);
}

static const struct bmm_pick *picks_at(const struct bmm_path *path,
				       unsigned int index,
				       const struct bmm_picks **picks)
{
	unsigned int at = index / BMM_CANDIDATES;

	*picks = path->picks[at >> 8];
	return &(*picks)->pick[at & 255];
}

/**
 * bmm_picks_name() - the name of a pick's directory
 * @picks: the operation's picks
 * @which: the pick
 * @buf:   result
 * @size:  bytes of @buf
 */
void bmm_picks_name(const struct bmm_picks *picks, unsigned int which,
		    char *buf, size_t size)
{
	size_t at = scnprintf(buf, size, "%s_", picks->name);

	picks->label(which, buf + at, size - at);
}

/* The backend that serves; before anything is measured, the first guess. */
ssize_t bmm_picks_serving_show(struct bmm_path *path, unsigned int index,
			       char *buf)
{
	const struct bmm_picks *picks;
	const struct bmm_pick *pick = picks_at(path, index, &picks);
	const struct bmm_backend *forced = READ_ONCE(picks->forced);

	forced = forced ?: bmm_pick_backend(pick, picks->op);
	return sysfs_emit(buf, "%s\n", forced->name);
}

/* MB/s of a candidate; 0: not measured. */
ssize_t bmm_picks_rate_show(struct bmm_path *path, unsigned int index, char *buf)
{
	const struct bmm_picks *picks;
	const struct bmm_pick *pick = picks_at(path, index, &picks);

	return sysfs_emit(buf, "%u\n",
			  bmm_pick_rate(pick, index % BMM_CANDIDATES));
}

/* All names that can be written, the current one in brackets. */
ssize_t bmm_picks_show(struct bmm_path *path, unsigned int index, char *buf)
{
	const struct bmm_picks *picks = path->picks[index];
	const struct bmm_backend *forced = READ_ONCE(picks->forced), *backend;
	ssize_t at = sysfs_emit(buf, forced ? "fastest" : "[fastest]");
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (bmm_backend_can(backend, picks->op))
			at += sysfs_emit_at(buf, at,
					    backend == forced ? " [%s]" : " %s",
					    backend->name);
	return at + sysfs_emit_at(buf, at, "\n");
}

/* Logs the one line about an invalid name. */
static void picks_refuse(const struct bmm_path *path, enum bmm_op op,
			 const char *name, int len)
{
	static const struct bmm_pick unused;
	char valid[LINE];

	bmm_pick_list(&unused, op, NULL, valid, sizeof(valid));
	pr_err("%s: unknown backend '%.*s': valid are fastest %s\n", path->name,
	       min(len, 16), name, valid);
}

/*
 * Resets what was measured. Others may be using the pick: bmm_turn_begin()
 * starts a pick without candidates from scratch, whatever else it holds.
 */
static void picks_forget(struct bmm_picks *picks)
{
	unsigned int i;

	for (i = 0; i < picks->nr; i++) {
		bmm_set(&picks->pick[i].decided, 0);
		bmm_set(&picks->pick[i].nr, 0);
	}
}

ssize_t bmm_picks_store(struct bmm_path *path, unsigned int index,
			const char *buf, size_t len)
{
	struct bmm_picks *picks = path->picks[index];
	bool fastest = sysfs_streq(buf, "fastest");
	const struct bmm_backend *forced = NULL;
	int name = strcspn(buf, "\n");

	if (!fastest)
		forced = bmm_backend_find(picks->op, buf, name);
	if (!fastest && !forced) {
		picks_refuse(path, picks->op, buf, name);
		return -EINVAL;
	}
	guard(mutex)(&bmm_picks_lock);
	if (fastest)
		picks_forget(picks);
	WRITE_ONCE(picks->forced, forced);
	if (picks->changed)
		picks->changed(picks);
	return len;
}
