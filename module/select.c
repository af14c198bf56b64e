// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selects the backend of each operation: all are timed once, on a buffer of the
 * module's own, before any path is on. After that only a write to sysfs changes
 * what is selected. A caller that is in the old backend, or on its way there,
 * is served by that: each is right. Where there are no static calls (arm64,
 * CONFIG_HAVE_STATIC_CALL), callers read one pointer, to the one or the other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../core/calibrate.h"
#include "faults.h"
#include "select.h"

#define LINE 256 /* most bytes of a list of backends */

DEFINE_STATIC_CALL_NULL(bmm_selected_cached, *(bmm_select_clear_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_selected_streaming, *(bmm_select_clear_fn *)NULL);

/*
 * struct operation - an operation that has a choice of backends
 * @file:     where it is shown and forced, as in messages
 * @calibration: how fast each backend was
 * @selected: the one that serves
 * @rate:     its MB/s; 0: not measured
 * @forced:   by a write to the file
 */
static struct operation {
	const char *file;
	struct bmm_calibration calibration;
	const struct bmm_backend *selected;
	unsigned int rate;
	bool forced;
} operations[BMM_OPS] = {
	[BMM_STAMP] = { .file = "memmap: backend" },
	[BMM_CLEAR] = { .file = "clear: backend_cached" },
	[BMM_CLEAR_STREAMING] = { .file = "clear: backend_streaming" },
};

/* Serialises writers of the above, who sleep. */
static DEFINE_MUTEX(select_lock);

/*
 * Memory that is worth the module's while is not in the cache, but for huge
 * pages that were freed a moment ago: ordinary stores may win a tenth of what
 * is cold, and take twice as long as REP STOSB in the cache (Zen 3). A call is
 * as long as the buffer.
 */
static struct bmm_calls select_calls(enum bmm_op op)
{
	return (struct bmm_calls){
		.op = op,
		.len = BMM_CALIBRATE_EXTENT,
		.hot = op == BMM_CLEAR ? 1 : 0,
		.cold = 2,
	};
}

static size_t select_list(enum bmm_op op, char *buf, size_t size)
{
	const struct operation *o = &operations[op];
	struct bmm_text text = { .buf = buf, .size = size };
	struct bmm_calls calls = select_calls(op);

	bmm_text_add(&text, o->forced ? "fastest " : "");
	bmm_calibration_list(&text, &o->calibration, &calls, o->selected);
	bmm_text_end(&text);
	return min(text.len, size - 1);
}

static unsigned int select_rate(enum bmm_op op,
				const struct bmm_backend *backend)
{
	const struct bmm_backend *list[BMM_CANDIDATES];
	struct bmm_calls calls = select_calls(op);
	unsigned int k = bmm_candidates(&calls, list);

	while (k--)
		if (list[k] == backend)
			return operations[op].calibration.rate[k];
	return 0;
}

static void select_backend(enum bmm_op op, const struct bmm_backend *backend,
			   bool forced)
{
	struct operation *o = &operations[op];

	if (op == BMM_CLEAR)
		static_call_update(bmm_selected_cached, backend->clear);
	else if (op == BMM_CLEAR_STREAMING)
		static_call_update(bmm_selected_streaming,
				   backend->clear_streaming);
	o->forced = forced;
	WRITE_ONCE(o->rate, select_rate(op, backend));
	WRITE_ONCE(o->selected, backend);
}

/* Takes milliseconds. */
static int select_fastest(enum bmm_op op)
{
	struct operation *o = &operations[op];
	struct bmm_calls calls = select_calls(op);
	void *buffer = NULL;
	char line[LINE];

	if (!bmm_fault("nomem"))
		buffer = kvmalloc(BMM_CALIBRATE_EXTENT,
				  GFP_KERNEL | __GFP_NOWARN);
	if (!buffer)
		return -ENOMEM;
	bmm_calibrate(&calls, buffer, &o->calibration);
	kvfree(buffer);
	select_backend(op, o->calibration.selected, false);
	select_list(op, line, sizeof(line));
	pr_info("%s: %s\n", o->file, line);
	return 0;
}

/**
 * bmm_select_init() - select the fastest backends, before paths may need them
 *
 * Without memory for a buffer, the first of each list.
 */
void bmm_select_init(void)
{
	const struct bmm_backend *list[BMM_CANDIDATES];
	struct bmm_calls calls;
	enum bmm_op op;

	guard(mutex)(&select_lock);
	for (op = 0; op < BMM_OPS; op++) {
		if (!operations[op].file || !select_fastest(op))
			continue;
		calls = select_calls(op);
		bmm_candidates(&calls, list);
		select_backend(op, list[0], false);
		pr_warn("%s: no memory to measure with, %s serves\n",
			operations[op].file, list[0]->name);
	}
}

/**
 * bmm_selected() - the backend that serves an operation
 * @op: the operation
 *
 * Context: any.
 * Return: the backend, a constant.
 */
const struct bmm_backend *bmm_selected(enum bmm_op op)
{
	return READ_ONCE(operations[op].selected);
}

/**
 * bmm_selected_rate() - how fast that was, alone and where it was slowest
 * @op: the operation
 *
 * Context: any.
 * Return: MB/s, which are bytes by the us; 0: not measured.
 */
unsigned int bmm_selected_rate(enum bmm_op op)
{
	return READ_ONCE(operations[op].rate);
}

/* Logs the one line about an invalid name. */
static void select_refuse(enum bmm_op op, const char *name, int len)
{
	static const struct bmm_calibration unmeasured;
	struct bmm_calls calls = select_calls(op);
	char valid[LINE];
	struct bmm_text text = { .buf = valid, .size = sizeof(valid) };

	bmm_calibration_list(&text, &unmeasured, &calls, NULL);
	bmm_text_end(&text);
	pr_err("%s: unknown backend '%.*s': valid are fastest %s\n",
	       operations[op].file, min(len, 16), name, valid);
}

/*
 * All names that can be written, with GB/s where that was measured, the one
 * that serves in brackets; "fastest" too, if another is forced.
 */
static ssize_t select_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	size_t at;

	guard(mutex)(&select_lock);
	at = select_list(attr - bmm_select_files, buf, PAGE_SIZE - 1);
	return at + sysfs_emit_at(buf, at, "\n");
}

/* A name forces that backend; "fastest" measures again. */
static ssize_t select_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t len)
{
	enum bmm_op op = attr - bmm_select_files;
	const struct bmm_backend *forced = NULL;
	int length = strcspn(buf, "\n");

	guard(mutex)(&select_lock);
	if (sysfs_streq(buf, "fastest"))
		return select_fastest(op) ?: len;
	/* nothing follows the line, as sysfs_streq() has it */
	if (!buf[length] || !buf[length + 1])
		forced = bmm_backend_find(op, buf, length);
	if (!forced) {
		select_refuse(op, buf, length);
		return -EINVAL;
	}
	select_backend(op, forced, true);
	return len;
}

#define SELECT_FILE(_name) __ATTR(_name, 0644, select_show, select_store)

struct kobj_attribute bmm_select_files[BMM_OPS] = {
	[BMM_STAMP] = SELECT_FILE(backend),
	[BMM_CLEAR] = SELECT_FILE(backend_cached),
	[BMM_CLEAR_STREAMING] = SELECT_FILE(backend_streaming),
};
