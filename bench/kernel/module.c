// SPDX-License-Identifier: GPL-2.0-only
/* Loads the module by its init function, and switches it as sysfs would. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "native.h"

static char *base;
static size_t bytes;
static char *loaded; /* as it was saved when it was loaded */

static char *module_symbol(const char *name)
{
	char *at = symbol_or_null(name, 'm');

	if (!at)
		fatal("the module has no symbol %s", name);
	return at;
}

/* Saves its memory, followed by its per-CPU memory. */
static void module_keep(char *state)
{
	size_t percpu_bytes;
	const char *percpu = services_percpu(&percpu_bytes);

	memcpy(state, base, bytes);
	memcpy(state + bytes, percpu, percpu_bytes);
}

static void module_put(const char *state)
{
	size_t percpu_bytes;
	char *percpu = services_percpu(&percpu_bytes);

	memcpy(base, state, bytes);
	memcpy(percpu, state + bytes, percpu_bytes);
}

static char *module_copy(void)
{
	size_t percpu_bytes;
	char *state;

	services_percpu(&percpu_bytes);
	state = require_memory(bytes + percpu_bytes);
	module_keep(state);
	return state;
}

/* Loads the module; false: there is none. */
bool module_init(void)
{
	int (*init)(void);
	int err;

	base = (char *)fact("module");
	bytes = fact("module size");
	if (!base)
		return false;
	init = (void *)module_symbol("init_module");
	err = init();
	if (err)
		fatal("the module refuses to load: error %d", err);
	loaded = module_copy();
	return true;
}

static void module_workers(const char *workers)
{
	unsigned long *setting = (unsigned long *)
		symbol_or_null("memmap_workers", 'm');

	if (setting && workers)
		*setting = strtoul(workers, NULL, 10);
}

/* The module's file with the backends of an operation. */
static char *backends_file(int op)
{
	return module_symbol("bmm_select_files") +
	       (unsigned int)op * SIZE("kobj_attribute");
}

/*
 * Forces a backend of a mode's operation; "fastest" measures again. False:
 * there is none of that name.
 */
bool module_force(const struct mode *mode, const char *backend)
{
	ssize_t (*store)(void *, void *, const char *,
			 size_t) = (void *)module_symbol("select_store");

	return store(NULL, backends_file(mode->op), backend, strlen(backend)) >
	       0;
}

/*
 * Switches the module as a variant needs it, and saves that state. It begins as
 * loaded: nothing is known of another variant or scenario. False: the module
 * has no such mode or backend.
 */
bool module_prepare(struct variant *variant, const struct subject *subject)
{
	int (*parse)(void *,
		     const char *) = (void *)module_symbol("bmm_parse_mode");
	int (*set)(void *, int) = (void *)module_symbol("bmm_path_set_mode");
	void *path = module_symbol(subject->path);
	int mode = parse(path, variant->mode->name);
	bool prepared;

	module_put(loaded);
	sites_write(false);
	module_workers(variant->mode->workers);
	prepared = mode > 0 && !set(path, mode) &&
		   (!variant->backend ||
		    module_force(variant->mode, variant->backend));
	if (prepared)
		variant->state = module_copy();
	module_put(loaded);
	return prepared;
}

/*
 * Puts the module into a variant's state, and attaches its hooks; a variant
 * without a mode leaves the kernel as it was built.
 */
void module_swap(const struct variant *to)
{
	static const struct variant *in;

	if (in && in->state)
		module_keep(in->state);
	if (to->state)
		module_put(to->state);
	sites_write(!!to->state);
	in = to;
}

/* How many requests the module has served in this state. */
uint64_t module_hits(const struct subject *subject)
{
	enum {
		HITS = 1
	}; /* BMM_HITS of module/path.h */
	static int64_t (*sum)(void *, unsigned int);
	static void *path;

	if (!sum) {
		sum = (void *)module_symbol("bmm_path_sum");
		path = module_symbol(subject->path);
	}
	return (uint64_t)sum(path, HITS);
}

static void protect(char *from, const char *to, int how)
{
	char *first = (char *)((uintptr_t)from & ~(PAGE - 1));

	if (mprotect(first, (size_t)(to - first), how))
		fatal("memory cannot be protected: %s", strerror(errno));
}

/*
 * Forbids stores to all memory of the module and the kernel except per-CPU
 * memory, or allows them again. A store then faults at the instruction that is
 * to blame.
 */
void module_protect(bool on)
{
	int how = PROT_READ | PROT_EXEC | (on ? 0 : PROT_WRITE);
	char *kernel = (char *)fact("kernel");
	char *first = symbol_or_null("__per_cpu_load", 'k'); /* counts from 0 */
	char *from = symbol_or_null("__per_cpu_start", 'k');
	char *last = symbol("__per_cpu_end");

	if (first)
		last += first - from;
	else
		first = from;
	protect(base, base + bytes, how);
	protect(kernel, first, how);
	protect(last + PAGE - 1, kernel + fact("kernel size"), how);
}

/* Appends the backend that serves an operation: the one in brackets. */
static void serving(int op, char *buf, size_t size)
{
	static char text[4096] __attribute__((__aligned__(4096)));
	ssize_t (*show)(void *, void *,
			char *) = (void *)module_symbol("select_show");
	size_t at = strlen(buf);
	char *name;

	text[show(NULL, backends_file(op), text)] = '\0';
	name = strchr(text, '[');
	if (!name)
		fatal("the module lists no backend that serves: %s", text);
	name++;
	snprintf(buf + at, size - at, "%s%.*s", at ? "/" : "",
		 (int)strcspn(name, "=]"), name);
}

/*
 * Lists the backends that the module selected; the mode has one operation, or
 * all. Empty if there is no choice.
 */
void module_served(const struct subject *subject, const struct mode *mode,
		   char *buf, size_t size)
{
	int op;

	buf[0] = '\0';
	for (op = 0; op < BMM_OPS; op++)
		if (subject->ops & 1 << op && (mode->op == -1 || mode->op == op))
			serving(op, buf, size);
}
