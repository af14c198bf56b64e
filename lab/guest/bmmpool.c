// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses bmm_populate() in a guest, built with the library itself: the ways to
 * populate side by side, each counted (visit), and what the library reports for
 * memory that only such a guest has (report).
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bmmpool.h"

int main(int argc, char **argv)
{
	size_t len = argc > 3 ? strtoull(argv[3], NULL, 0) << 20 : 0;

	if (argc == 5 && len && !strcmp(argv[1], "visit"))
		return visit(argv[2], len, argv[4]);
	if (argc >= 4 && len && !strcmp(argv[1], "report"))
		return report(argv[2], len, argv + 4);
	fprintf(stderr, "usage: bmmpool visit KIND MIB WAY\n"
			"       bmmpool report KIND MIB [OPTION...]\n");
	return 2;
}
