// SPDX-License-Identifier: GPL-2.0-only
/* Everything about the images by name: facts, which are numbers, and symbols. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

struct entry {
	uint64_t address;
	const char *name;
	char from; /* k: the kernel, m: the module */
};

struct list {
	struct entry *at;
	size_t nr;
};

static SIDE struct list facts, symbols;

static char *read_whole(const char *directory, const char *name)
{
	char path[4096];
	size_t size = 0, got, room = 0;
	char *text = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		die("%s: %s", path, strerror(errno));
	do {
		room += (size_t)4 << 20;
		text = realloc(text, room + 1);
		if (!text)
			die("no memory for %s", path);
		got = fread(text + size, 1, room - size, file);
		size += got;
	} while (got);
	fclose(file);
	text[size] = '\0';
	return text;
}

/* Parses lines "ADDRESS NAME" or "ADDRESS FROM NAME". */
static struct list parse(char *text, bool from)
{
	struct list list = { NULL, 0 };
	char *line, *name, *rest = text;

	for (line = text; *line; line++)
		list.nr += *line == '\n';
	list.at = need(list.nr * sizeof(*list.at) + 1);
	for (list.nr = 0; (line = strsep(&rest, "\n")) && *line; list.nr++) {
		struct entry *e = &list.at[list.nr];

		e->address = strtoull(line, &name, 16);
		e->from = from ? name[1] : 0;
		e->name = name + (from ? 3 : 1);
	}
	return list;
}

/* By name; equal names stay in the order listed. */
static int before(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;
	int by = strcmp(a->name, b->name);

	if (!by)
		by = a->from - b->from;
	return by ? by : (a->name > b->name) - (a->name < b->name);
}

static void sort(struct list *list)
{
	qsort(list->at, list->nr, sizeof(*list->at), before);
}

/**
 * symbols_load() - read the facts and symbols of a directory
 * @directory: written by the loader
 */
void symbols_load(const char *directory)
{
	facts = parse(read_whole(directory, "facts"), false);
	symbols = parse(read_whole(directory, "symbols"), true);
	sort(&facts);
	sort(&symbols);
}

/* Finds the first entry of a sorted list. */
static const struct entry *find(const struct list *list, const char *name,
				char from)
{
	size_t low = 0, high = list->nr, middle;

	while (low < high) {
		const struct entry *e = &list->at[middle = (low + high) / 2];
		int by = strcmp(e->name, name);

		if (by ? by < 0 : e->from < from)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == list->nr || list->at[low].from != from ||
	    strcmp(list->at[low].name, name))
		return NULL;
	return &list->at[low];
}

/**
 * fact() - look up a number that the loader found
 * @name: "offset STRUCT.MEMBER" and the like
 *
 * Return: the number; ends the process if there is none.
 */
uint64_t fact(const char *name)
{
	const struct entry *e = find(&facts, name, 0);

	if (!e)
		die("nothing is known of %s", name);
	return e->address;
}

/* A symbol's address in the kernel or the module; NULL if there is none. */
char *symbol_or_null(const char *name, char from)
{
	const struct entry *e = find(&symbols, name, from);

	return e ? (char *)e->address : NULL;
}

/* The same in the kernel; ends the process if there is none. */
char *symbol(const char *name)
{
	char *at = symbol_or_null(name, 'k');

	if (!at)
		die("the kernel has no symbol %s", name);
	return at;
}

static bool within(uint64_t address, const char *what, const char *size)
{
	uint64_t start = fact(what);

	return address >= start && address - start < fact(size);
}

/**
 * symbol_describe() - format an address as symbol+offset
 * @address: the address
 * @buf:     result
 * @size:    bytes of @buf
 */
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
	for (i = 0; i < symbols.nr; i++) {
		const struct entry *e = &symbols.at[i];

		if (e->address <= address &&
		    (!best || e->address > best->address))
			best = e;
	}
	snprintf(buf, size, "%s%s+0x%llx", best->from == 'm' ? "bulkmm:" : "",
		 best->name, (unsigned long long)(address - best->address));
}
