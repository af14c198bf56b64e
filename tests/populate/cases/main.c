// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm_populate() and bmm_clear_parallel() by cases: bmm-cases NAME. Ends with 0
 * if all is as it must be; else says what is not, and ends with 1. What needs a
 * machine of another kind (many CPUs, a kernel without MADV_POPULATE_WRITE, no
 * thread to be had) has it made (machine.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

const char *current = "";
int wrong;

static const struct {
	const char *name;
	void (*before)(void);
	void (*run)(void);
} cases[] = {
#define CASE(name, before, run) { name, before, run },
#include "cases.def"
#undef CASE
};

struct bmm_report all_of(char *p, size_t len, const struct bmm_options *options)
{
	struct bmm_report report = REPORT;

	check(!bmm_populate(p, len, options, &report));
	check(report.done == len && report.reached == p + len);
	check(!report.error && !report.cause && !report.failed_len);
	return report;
}

#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	size_t i;

	if (argc >= 3)
		outside(argv[1], strtoull(argv[2], NULL, 10),
			argc > 3 ? argv[3] : "");
	for (i = 0; i < CASES; i++) {
		if (argc == 1)
			puts(cases[i].name);
		if (argc != 2 || strcmp(argv[1], cases[i].name))
			continue;
		current = cases[i].name;
		if (cases[i].before)
			cases[i].before();
		cases[i].run();
	}
	return wrong;
}
