// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses bmm_populate() in a guest, built with the library itself: the ways to
 * populate side by side, each counted (visit), and what the library reports for
 * memory that only such a guest has (report).
 */
#include "bmmpool.h"

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "visit KIND MIB WAY", 3, 3, visit },
		{ "report KIND MIB [OPTION...]", 2, 7, report },
	};

	return RUN_ONE(commands, argc, argv);
}
