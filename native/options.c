// SPDX-License-Identifier: GPL-2.0-only
/* The command line. The bulkmm command is the user's front end for this. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const struct family *const families[] = { &memmap_family, &clear_family,
						 &copy_family, &vmap_family,
						 &hotplug_family };

#define FAMILIES_NR (sizeof(families) / sizeof(families[0]))

static bool take_flag(struct run *run, const char *word)
{
	if (!strcmp(word, "--backends"))
		run->backends = true;
	else if (!strcmp(word, "--shared"))
		run->shared = true;
	else if (!strcmp(word, "--break-one-word"))
		run->corrupt = true;
	else if (!strcmp(word, "--stock"))
		run->stock = true;
	else
		return false;
	return true;
}

static bool take_value(struct run *run, const char *word, const char *value)
{
	if (!strncmp(word, "--size=", 7))
		run->size = strtoull(value, NULL, 10);
	else if (!strncmp(word, "--rounds=", 9))
		run->rounds = (unsigned int)strtoul(value, NULL, 10);
	else if (!strncmp(word, "--seed=", 7))
		run->seed = strtoull(value, NULL, 10);
	else if (!strncmp(word, "--only=", 7))
		run->only = value;
	else if (!strncmp(word, "--corpus=", 9))
		run->corpus = value;
	else if (!strncmp(word, "--against=", 10))
		run->against = value;
	else if (!strncmp(word, "--case=", 7))
		run->one_case = value;
	else if (!strncmp(word, "--fuzz=", 7)) {
		run->fuzz = true;
		run->seconds = (unsigned int)strtoul(value, NULL, 10);
	} else
		return false;
	return true;
}

/**
 * run_parse() - read the command line
 * @run:  filled
 * @argc: as main() has it
 * @argv: as main() has it
 *
 * Return: false if it is none.
 */
bool run_parse(struct run *run, int argc, char **argv)
{
	const char *value;
	size_t f;
	int i;

	if (argc < 3)
		return false;
	for (f = 0; f < FAMILIES_NR; f++)
		if (!strcmp(argv[2], families[f]->name))
			run->family = families[f];
	for (i = 3; i < argc; i++) {
		value = strchr(argv[i], '=');
		if (value ? !take_value(run, argv[i], value + 1) :
			    !take_flag(run, argv[i]))
			return false;
	}
	return run->family && run->size && (run->rounds || run->shared) &&
	       run->seed;
}
