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
	const char *suffix;
	void (*forbid)(void);
} kernels[] = {
	{ "", NULL },
	{ "-touched", forbid_advice },
	{ "-maps", forbid_query },
	{ "-entries", forbid_scan },
};

static const struct one *cases;

void add_case(struct one *one)
{
	one->next = cases;
	cases = one;
}

struct bmm_report all_of(char *p, size_t len, const struct bmm_options *options)
{
	struct bmm_report report = REPORT;

	check(!bmm_populate(p, len, options, &report));
	check(report.done == len && report.reached == p + len);
	check(!report.error && !report.cause && !report.failed_len);
	return report;
}

/* Of one kernel. */
static void run(const struct one *one, size_t kernel, const char *wanted)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s", one->name, kernels[kernel].suffix);
	if (!wanted)
		puts(name);
	if (!wanted || strcmp(wanted, name))
		return;
	current = name;
	if (kernels[kernel].forbid)
		kernels[kernel].forbid();
	one->run();
}

int main(int argc, char **argv)
{
	const struct one *one;
	size_t i;

	if (argc >= 3) {
		outside(argv[1], strtoull(argv[2], NULL, 10),
			argc > 3 ? argv[3] : "");
		return wrong;
	}
	for (one = cases; one; one = one->next)
		for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
			if (one->on >> i & 1)
				run(one, i, argv[1]);
	return wrong;
}
