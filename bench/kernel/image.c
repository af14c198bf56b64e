// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the loader has written: the images of the kernel and the module, and
 * everything about them by name: facts, which are numbers, and symbols.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "native.h"

struct entry {
	uint64_t value;
	const char *name;
	char from; /* f: a fact; a symbol of k: the kernel, m: the module */
};

static PER_KERNEL struct entry *entries; /* sorted */
static PER_KERNEL size_t entries_nr;

static char *read_whole(const char *directory, const char *name)
{
	char path[4096], *text = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file || getdelim(&text, &room, '\0', file) < 0)
		fatal("%s: %s", path, strerror(errno));
	fclose(file);
	return text;
}

static int compare(const void *first, const void *second)
{
	const struct entry *a = first, *b = second;
	int by = strcmp(a->name, b->name);

	return by ? by : a->from - b->from;
}

/* Reads facts and symbols, in lines "VALUE FROM NAME". */
static void read_names(const char *directory)
{
	char *text = read_whole(directory, "names"), *line, *at;

	for (at = text, entries_nr = 0; *at; at++)
		entries_nr += *at == '\n';
	entries = require_memory(entries_nr * sizeof(*entries));
	for (at = text, entries_nr = 0; *(line = strsep(&at, "\n"));) {
		struct entry *e = &entries[entries_nr++];
		char *rest;

		e->value = strtoull(line, &rest, 16);
		e->from = rest[1];
		e->name = rest + 3;
	}
	qsort(entries, entries_nr, sizeof(*entries), compare);
}

static const struct entry *find(const char *name, char from)
{
	struct entry key = { .name = name, .from = from };

	return bsearch(&key, entries, entries_nr, sizeof(key), compare);
}

/*
 * A number that the loader found, such as "offset STRUCT.MEMBER"; ends the
 * process if there is none.
 */
uint64_t fact(const char *name)
{
	const struct entry *e = find(name, 'f');

	if (!e)
		fatal("nothing is known of %s", name);
	return e->value;
}

/* A symbol's address in the kernel or the module; NULL if there is none. */
char *symbol_or_null(const char *name, char from)
{
	const struct entry *e = find(name, from);

	return e ? (char *)e->value : NULL;
}

/* The same in the kernel; ends the process if there is none. */
char *symbol(const char *name)
{
	char *at = symbol_or_null(name, 'k');

	if (!at)
		fatal("the kernel has no symbol %s", name);
	return at;
}

static bool within(uint64_t address, const char *query, const char *size)
{
	uint64_t start = fact(query);

	return address >= start && address - start < fact(size);
}

/* Formats an address as symbol+offset. */
void symbol_describe(uint64_t address, char *buf, size_t size)
{
	const struct entry *best = NULL;
	size_t i;

	if (!within(address, "kernel", "kernel size") &&
	    !within(address, "module", "module size")) {
		snprintf(buf, size, "the harness at 0x%llx",
			 (unsigned long long)address);
		return;
	}
	for (i = 0; i < entries_nr; i++) {
		const struct entry *e = &entries[i];

		if (e->from != 'f' && e->value <= address &&
		    (!best || e->value > best->value))
			best = e;
	}
	snprintf(buf, size, "%s%s+0x%llx", best->from == 'm' ? "bulkmm:" : "",
		 best->name, (unsigned long long)(address - best->value));
}

/* Maps code and data together, on huge pages if possible. */
static void map_image(const char *directory, const char *name)
{
	char path[4096], size_name[32];
	uint64_t base = fact(name), size;
	size_t bytes;
	FILE *file;
	char *at;

	snprintf(size_name, sizeof(size_name), "%s size", name);
	size = fact(size_name);
	if (!base)
		return;
	bytes = (size + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1);
	at = mmap((void *)base, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (char *)base)
		fatal("the %s cannot be mapped at 0x%llx: %s", name,
		      (unsigned long long)base,
		      errno == EEXIST ? "the range is taken" : strerror(errno));
	madvise(at, bytes, MADV_HUGEPAGE);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file || fread(at, 1, size, file) != size)
		fatal("%s: cannot be read", path);
	fclose(file);
}

/*
 * Maps the images of a directory that the loader wrote, and reads their
 * symbols.
 */
void image_load(const char *directory)
{
	read_names(directory);
	map_image(directory, "kernel");
	map_image(directory, "module");
}
