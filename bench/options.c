// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command line. The bulkmm command is the friendly way to use this. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static const struct option known[] = {
	{ "size", required_argument, NULL, 's' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "seed", required_argument, NULL, 'S' },
	{ "backend", required_argument, NULL, 'b' },
	{ "list", no_argument, NULL, 'l' },
	{ 0 },
};

static int number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *value < low || *value > high) {
		fprintf(stderr,
			"bmm-bench: %s: not a number from %llu to %llu\n", text,
			(unsigned long long)low, (unsigned long long)high);
		return -1;
	}
	return 0;
}

/**
 * options_parse() - read the command line
 * @options: set to the defaults, then to what the user wants
 * @argc:    as main() has it
 * @argv:    as main() has it
 *
 * Return: 0, or -1 after a line on stderr.
 */
int options_parse(struct options *options, int argc, char **argv)
{
	uint64_t value;
	int c, err = 0;

	*options = (struct options){ .size = 100ULL << 30,
				     .rounds = 15,
				     .seed = 1 };
	while (!err && (c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's':
			err = number(optarg, SECTION_SIZE, 1ULL << 50,
				     &options->size);
			break;
		case 'r':
			err = number(optarg, 1, 10000, &value);
			options->rounds = (unsigned int)value;
			break;
		case 'S':
			err = number(optarg, 1, UINT64_MAX, &options->seed);
			break;
		case 'b':
			options->backend = optarg;
			break;
		case 'l':
			options->list = true;
			break;
		default:
			err = -1;
		}
	}
	return err;
}
