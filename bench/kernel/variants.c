// SPDX-License-Identifier: GPL-2.0-only
/*
 * The variants of a scenario: the kernel's function, twice, or that of the
 * kernel to compare with; the module in each mode and with each backend;
 * published methods; limits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static struct variant *add_variant(struct run *run, const char *name,
				   const char *suffix)
{
	struct variant *variant = &run->variants[run->nr++];

	if (run->nr > VARIANTS_MAX)
		fatal("too many variants");
	*variant = (struct variant){ .mode = NULL };
	snprintf(variant->name, sizeof(variant->name), "%s%s", name, suffix);
	return variant;
}

static bool is_shared(const struct mode *mode)
{
	return mode->workers && strcmp(mode->workers, "1");
}

/*
 * The name of the module's variant in a mode: memmap has only one mode, and
 * those of vmap are known by their own names.
 */
static void name_mode(const struct subject *subject, const struct mode *mode,
		      char *buf, size_t size)
{
	bool usual = !strcmp(mode->name, "on") || !strcmp(mode->name, "auto");
	bool shared = is_shared(mode);

	snprintf(buf, size, "%s%s%s%s", subject->loop || usual ? "" : "bulkmm-",
		 usual ? "bulkmm" : mode->name, shared ? "-" : "",
		 shared ? mode->workers : "");
}

/*
 * Whether the module can have a variant of this name. Its backend, if it names
 * one, may be unknown to this CPU.
 */
bool variants_known(const struct subject *subject, const char *name)
{
	size_t length = strcspn(name, ":");
	const struct mode *mode;
	char mode_name[NAME_MAX_BYTES];

	for (mode = subject->modes; mode->name; mode++) {
		name_mode(subject, mode, mode_name, sizeof(mode_name));
		if (strlen(mode_name) == length &&
		    !memcmp(mode_name, name, length))
			return true;
	}
	return false;
}

/* The names that variants_known() knows. */
const char *variants_list(const struct subject *subject)
{
	static char list[256];
	const struct mode *mode;
	size_t length = 0;

	for (mode = subject->modes; mode->name; mode++) {
		char name[NAME_MAX_BYTES];

		name_mode(subject, mode, name, sizeof(name));
		length += (size_t)snprintf(list + length, sizeof(list) - length,
					   "%s%s", length ? ", " : "", name);
		if (length >= sizeof(list))
			break;
	}
	return list;
}

/* Adds the module in a mode: as it selects, and with each backend. */
static void add_mode(struct run *run, const struct mode *mode)
{
	const struct subject *subject = run->subject;
	const struct bmm_backend *backend;
	char name[24], suffix[32];
	struct variant *variant;
	size_t i;

	if (is_shared(mode) && !run->backends)
		return;
	name_mode(subject, mode, name, sizeof(name));
	variant = add_variant(run, name, "");
	variant->mode = mode;
	if (!module_prepare(variant, subject)) {
		if (!run->against)
			fatal("the module does not attach %s in mode %s",
			      subject->name, mode->name);
		run->nr--; /* two kernels are compared all the same */
		return;
	}
	if (!run->backends || mode->op < 0 || is_shared(mode))
		return;
	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		snprintf(suffix, sizeof(suffix), ":%s", backend->name);
		variant = add_variant(run, name, suffix);
		variant->mode = mode;
		variant->backend = backend->name;
		if (!module_prepare(variant, subject))
			run->nr--;
	}
}

/* The first is the base, whose result the others' are compared with. */
static void add_kernels(struct run *run)
{
	const char *base = run->against ? "against" : "stock";
	unsigned int side = !!run->against;

	add_variant(run, base, "")->side = side;
	add_variant(run, base, "-again")->side = side;
	if (run->against)
		add_variant(run, "kernel", "");
}

/* Sets up all variants of a scenario. */
void variants_make(struct run *run, const struct scenario *s)
{
	const struct limit *limit;
	const struct mode *mode;
	size_t i;

	run->nr = 0;
	side_enter(0);
	add_kernels(run);
	for (mode = s->modes; run->module && mode->name; mode++)
		add_mode(run, mode);
	if (run->stock)
		return;
	for (i = 0; s->peers && s->peers[i]; i++)
		add_variant(run, s->peers[i], "")->peer = i + 1;
	if (s->unlimited)
		return;
	if (run->subject->loop) {
		add_variant(run, "limit:", "loop")->loop = true;
		return;
	}
	for (i = 0; (limit = limit_at(run->subject->op, i)); i++)
		add_variant(run, "limit:", limit_name(limit))->limit = limit;
}

/* Detaches the module, and frees what it was in each variant. */
void variants_free(struct run *run)
{
	size_t i;

	module_swap(&run->variants[0]);
	for (i = 0; i < run->nr; i++)
		free(run->variants[i].state);
}
