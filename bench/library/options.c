// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command line. The bulkmm command is the user's front end for this. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct option option_table[] = {
	{ "size", required_argument, NULL, 's' },
	{ "extent", required_argument, NULL, 'e' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "seed", required_argument, NULL, 'S' },
	{ "backend", required_argument, NULL, 'b' },
	{ "unverified", no_argument, NULL, 'U' },
	{ "list", no_argument, NULL, 'l' },
	{ 0 },
};

static bool parse_number(const char *text, uint64_t low, uint64_t high,
			 uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *value >= low && *value <= high;
}

/* A power of two. */
static bool add_extent(struct options *options, const char *text)
{
	uint64_t value;

	if (!parse_number(text, EXTENT_MIN, 1ULL << 40, &value) ||
	    value & (value - 1) || options->extents_nr == EXTENTS_MAX)
		return false;
	options->extents[options->extents_nr++] = value;
	return true;
}

static bool take_option(struct options *options, int c)
{
	switch (c) {
	case 's':
		return parse_number(optarg, EXTENT_MIN, 1ULL << 50,
				    &options->size);
	case 'e':
		return add_extent(options, optarg);
	case 'r':
		return parse_number(optarg, 1, 10000, &options->rounds);
	case 'S':
		return parse_number(optarg, 1, UINT64_MAX, &options->seed);
	case 'b':
		options->backend = optarg;
		return true;
	case 'U':
		options->unverified = true;
		return true;
	case 'l':
		options->list = true;
		return true;
	default:
		return false;
	}
}

/* Reads the command line, whose only other word names the subject. */
bool options_parse(struct options *options, int argc, char **argv)
{
	size_t i;
	int c;

	*options = (struct options){
		.subject = "", .size = 1ULL << 30, .rounds = 15, .seed = 1
	};
	while ((c = getopt_long(argc, argv, "", option_table, NULL)) != -1)
		if (!take_option(options, c))
			return false;
	if (optind < argc)
		options->subject = argv[optind];
	for (i = 0; i < options->extents_nr; i++)
		if (options->size % options->extents[i])
			return false;
	return true;
}

/* The backend that the command line forces for an operation, or "fastest". */
const char *options_backend(const struct options *options, enum bmm_op op)
{
	const char *name = options->backend;

	return name && bmm_backend_find(op, name, strlen(name)) ? name :
								  "fastest";
}

/* Bytes of the largest extent. */
size_t options_largest(const struct options *options)
{
	uint64_t largest = 0;
	size_t i;

	for (i = 0; i < options->extents_nr; i++)
		if (options->extents[i] > largest)
			largest = options->extents[i];
	return (size_t)largest;
}
