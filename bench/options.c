// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command line. The bulkmm command is the user's front end for this. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct option known[] = {
	{ "size", required_argument, NULL, 's' },
	{ "extent", required_argument, NULL, 'e' },
	{ "used-max", required_argument, NULL, 'u' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "seed", required_argument, NULL, 'S' },
	{ "backend", required_argument, NULL, 'b' },
	{ "unverified", no_argument, NULL, 'U' },
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

static int add_extent(struct options *options, const char *text)
{
	uint64_t value;

	if (number(text, EXTENT_MIN, 1ULL << 40, &value))
		return -1;
	if (value & (value - 1) || options->extents_nr == EXTENTS_MAX) {
		fprintf(stderr, "bmm-bench: extents: %u powers of two at most\n",
			EXTENTS_MAX);
		return -1;
	}
	options->extents[options->extents_nr++] = value;
	return 0;
}

static int take(struct options *options, int c)
{
	uint64_t value;
	int err = 0;

	switch (c) {
	case 's':
		return number(optarg, EXTENT_MIN, 1ULL << 50, &options->size);
	case 'e':
		return add_extent(options, optarg);
	case 'u':
		return number(optarg, 0, UINT64_MAX, &options->used_max);
	case 'r':
		err = number(optarg, 1, 10000, &value);
		options->rounds = (unsigned int)value;
		return err;
	case 'S':
		return number(optarg, 1, UINT64_MAX, &options->seed);
	case 'b':
		options->backend = optarg;
		return 0;
	case 'U':
		options->unverified = true;
		return 0;
	case 'l':
		options->list = true;
		return 0;
	default:
		return -1;
	}
}

/* --size must be a multiple of each extent. */
static int check_extents(const struct options *options)
{
	for (size_t i = 0; i < options->extents_nr; i++) {
		if (options->size % options->extents[i]) {
			fprintf(stderr,
				"bmm-bench: --size is no multiple of --extent\n");
			return -1;
		}
	}
	return 0;
}

/**
 * options_parse() - read the command line
 * @options: set to the defaults, then from the command line
 * @argc:    as main() has it
 * @argv:    as main() has it
 *
 * The only non-option argument names the subject.
 *
 * Return: 0, or -1 after a line on stderr.
 */
int options_parse(struct options *options, int argc, char **argv)
{
	int c, err = 0;

	*options = (struct options){ .subject = "memmap",
				     .size = 100ULL << 30,
				     .used_max = UINT64_MAX,
				     .rounds = 15,
				     .seed = 1 };
	while (!err && (c = getopt_long(argc, argv, "", known, NULL)) != -1)
		err = take(options, c);
	if (!err && optind < argc)
		options->subject = argv[optind];
	return err ? err : check_extents(options);
}

/**
 * options_backend() - the requested backend
 * @options: from options_parse()
 * @op:      for which operation
 *
 * Return: the name of the forced backend, or "fastest".
 */
const char *options_backend(const struct options *options, enum bmm_op op)
{
	const char *name = options->backend;

	return name && bmm_backend_find(op, name, strlen(name)) ? name :
								  "fastest";
}

/**
 * options_largest() - the largest extent
 * @options: from options_parse()
 *
 * Return: bytes; 0 where none is given.
 */
size_t options_largest(const struct options *options)
{
	uint64_t largest = 0;
	size_t i;

	for (i = 0; i < options->extents_nr; i++)
		if (options->extents[i] > largest)
			largest = options->extents[i];
	return (size_t)largest;
}
