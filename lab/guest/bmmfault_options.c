// SPDX-License-Identifier: GPL-2.0-only
/* The command line of bmmfault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bmmfault.h"

uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

int usage(void)
{
	fprintf(stderr,
		"usage: bmmfault dirty MIB: so much memory, again and again\n"
		"       bmmfault [-n FOLIOS] [-b BATCH] [-t SECONDS] [-u FILE]\n"
		"                [-p|-f] [-m] thp|hugetlb KIB WAY...\n"
		"  -n how many folios; -b so many at once\n"
		"  -t go on for so long; that there are no huge pages is no failure\n"
		"  -u and until there is such a file\n"
		"  -p leave a byte in the last folio, which must be found\n"
		"  -f fault in, and neither look at the folios nor fill them\n"
		"  -m with memory tags, which must be zero as well\n"
		"  WAY:");
	for (unsigned int i = 0; i < WAYS; i++)
		fprintf(stderr, " %s", ways[i].name);
	fprintf(stderr, "\n");
	return 2;
}

/* Returns 0 if the options are invalid. */
static int options(struct asked *asked, int argc, char **argv)
{
	struct work *work = &asked->work;
	int option;

	while ((option = getopt(argc, argv, "n:b:t:u:pfm")) != -1) {
		if (option == 'n')
			work->folios = number(optarg);
		else if (option == 'b')
			work->batch = number(optarg);
		else if (option == 't')
			work->seconds = number(optarg);
		else if (option == 'u')
			work->until = optarg;
		else if (option == 'p')
			work->plant = 1;
		else if (option == 'f')
			work->faults_only = 1;
		else if (option == 'm')
			work->tagged = 1;
		else
			return 0;
	}
	return work->batch > 0;
}

int arguments(struct asked *asked, int argc, char **argv)
{
	struct work *work = &asked->work;

	if (!options(asked, argc, argv) || argc - optind < 3 ||
	    argc - optind - 2 > (int)WAYS)
		return 0;
	work->hugetlb = !strcmp(argv[optind], "hugetlb");
	work->bytes = number(argv[optind + 1]) * 1024;
	for (int i = optind + 2; i < argc; i++)
		asked->ways[asked->n++] = way_named(argv[i], work->hugetlb);
	return work->bytes >= 2 * SMALL && !(work->bytes & (work->bytes - 1));
}
