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
	void (*before)(void); /* makes another kernel of this one */
	void (*run)(void);
} cases[] = {
	{ "kinds", NULL, kinds },
	{ "kinds-touched", forbid_advice, kinds },
	{ "kinds-smaps", forbid_query, kinds },
	{ "bad-ranges", NULL, bad_ranges },
	{ "bad-ranges-touched", forbid_advice, bad_ranges },
	{ "bad-ranges-smaps", forbid_query, bad_ranges },
	{ "bisection", NULL, bisection },
	{ "kernels-own-errors", NULL, kernels_own_errors },
	{ "arguments", NULL, arguments },
	{ "present", NULL, present },
	{ "present-touched", forbid_advice, present },
	{ "present-entries", forbid_scan, present },
	{ "present-huge", NULL, present_huge },
	{ "zeroes-huge", NULL, zeroes_huge },
	{ "present-huge-touched", forbid_advice, present_huge },
	{ "holes", NULL, holes },
	{ "holes-touched", forbid_advice, holes },
	{ "alone", NULL, alone },
	{ "alone-no-more", NULL, alone_no_more },
	{ "forked-before", NULL, forked_before },
	{ "child-before", NULL, child_before },
	{ "forked-unseen", NULL, forked_unseen },
	{ "looked-at-once", NULL, looked_at_once },
	{ "read-of-a-file", NULL, read_of_a_file },
	{ "kinds-entries", forbid_scan, kinds },
	{ "on-node", NULL, on_node },
	{ "no-policies", NULL, no_policies },
	{ "progress", NULL, progress },
	{ "fork-in-progress", NULL, fork_in_progress },
	{ "fork-that-cancels", NULL, fork_that_cancels },
	{ "fork-elsewhere", NULL, fork_elsewhere },
	{ "signals", NULL, signals },
	{ "cancelled-thread", NULL, cancelled_thread },
	{ "nothing-left", NULL, nothing_left },
	{ "no-files", NULL, no_files },
	{ "grows", NULL, grows },
	{ "finds-how-many", NULL, finds_how_many },
	{ "does-not-grow", NULL, does_not_grow },
	{ "no-threads", NULL, no_threads },
	{ "limit-of-processes", NULL, limit_of_processes },
	{ "grows-after-fork", NULL, grows_after_fork },
	{ "unknown-cpus", forbid_affinity, unknown_cpus },
	{ "bound-as-before", NULL, bound_as_before },
	{ "halves-of-nodes", NULL, halves_of_nodes },
	{ "interleaved-nodes", NULL, interleaved_nodes },
	{ "set-up", NULL, set_up },
	{ "stall", NULL, stall },
	{ "clears", NULL, clears },
	{ "many-mappings", NULL, many_mappings },
	{ "many-mappings-smaps", forbid_query, many_mappings_smaps },
	{ "memory-alone", NULL, memory_alone },
	{ "memory-alone-smaps", forbid_query, memory_alone },
	{ "reading", NULL, reading },
	{ "poisoned", NULL, poisoned },
	{ "device", NULL, device },
	{ "device-touched", forbid_advice, device },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	size_t i;

	if (argc >= 3)
		outside(argv[1], strtoull(argv[2], NULL, 10), argc > 3);
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
