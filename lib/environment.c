// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * environment.c - backends by environment variable
 *
 * BULKMM_STAMP, BULKMM_COPY, BULKMM_CLEAR and BULKMM_CLEAR_STREAMING each force
 * a backend on their operation, as bmm_backend_select() does: its name, or
 * "fastest" for bulkmm's own choice, which is also what a missing or empty
 * variable means. They are read once, before main(), and not at all by a
 * program that runs with more rights than its user. A name that is not valid
 * on this CPU changes nothing; one line on standard error lists the valid ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulkmm.h"

#define SHOWN 40 /* characters of a value that is not a backend's name */
#define NAMES 256

static const char *const variables[BMM_OPS] = {
	[BMM_STAMP] = "BULKMM_STAMP",
	[BMM_COPY] = "BULKMM_COPY",
	[BMM_CLEAR] = "BULKMM_CLEAR",
	[BMM_CLEAR_STREAMING] = "BULKMM_CLEAR_STREAMING",
};

/* The value may be anything, a terminal's control sequences too. */
static void printable(char out[SHOWN + sizeof("...")], const char *value)
{
	size_t i;

	for (i = 0; i < SHOWN && value[i]; i++)
		out[i] = value[i] < ' ' || value[i] > '~' ? '?' : value[i];
	strcpy(out + i, value[i] ? "..." : "");
}

/* As bmm_backend_list(), without the brackets: the choice differs by length. */
static void valid_names(char out[NAMES], enum bmm_op op)
{
	const char *from = out;

	bmm_backend_list(op, 0, out, NAMES);
	do {
		if (*from != '[' && *from != ']')
			*out++ = *from;
	} while (*from++);
}

static void complain(enum bmm_op op, const char *value)
{
	char shown[SHOWN + sizeof("...")], names[NAMES];

	printable(shown, value);
	valid_names(names, op);
	fprintf(stderr,
		"libbulkmm: %s=%s: no such backend for this operation on "
		"this CPU, use one of: fastest %s\n",
		variables[op], shown, names);
}

__attribute__((__constructor__)) static void read_environment(void)
{
	const char *value;
	int op;

	for (op = 0; op < BMM_OPS; op++) {
		value = secure_getenv(variables[op]);
		if (value &&
		    bmm_backend_select((enum bmm_op)op, value, strlen(value)))
			complain((enum bmm_op)op, value);
	}
}
