// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds stores to memory that CPUs share. Once the module is settled, it may
 * write only to per-CPU memory, and reads the clock only now and then. A store
 * to anything else faults.
 */
#include <stdio.h>

#include "native.h"

enum {
	MOST = 16, /* times as many rounds, for what is measured by a little each */
	TRIES = 8, /* a unit in which the task is preempted is taken for a slow one */
};

static uint64_t calls(const struct scenario *s)
{
	return s->bytes / (PAGE << s->order);
}

/* Runs a round; returns how often the clock was read. */
static uint64_t clocks_of(const struct run *run, const struct scenario *s)
{
	uint64_t clocks = services_clocks();

	run->family->call(s);
	return services_clocks() - clocks;
}

static void settle(const struct run *run, const struct scenario *s,
		   const struct arm *arm)
{
	uint64_t clocks = UINT64_MAX, least = UINT64_MAX;
	unsigned int i;

	module_swap(arm);
	for (i = 0;
	     i < run->rounds || (clocks >= calls(s) && i < MOST * run->rounds);
	     i++) {
		run->family->reset(s);
		clocks = clocks_of(run, s);
	}
	module_protect(true);
	for (i = 0; i < TRIES; i++) {
		clocks = clocks_of(run, s);
		least = clocks < least ? clocks : least;
	}
	module_protect(false);
	printf("{\"event\":\"settled\",\"scenario\":\"%s\",\"variant\":\"%s\",\"calls\":%llu,\"clocks\":%llu}\n",
	       s->name, arm->name, (unsigned long long)calls(s),
	       (unsigned long long)least);
}

/**
 * settle_scenario() - let the module settle in each mode, then forbid stores
 * @run: after how many rounds, or MOST times as many while it still measures
 * @s:   the scenario
 */
void settle_scenario(struct run *run, const struct scenario *s)
{
	size_t i;

	arms_make(run, s);
	if (run->family->enter)
		run->family->enter(s);
	for (i = 0; i < run->nr; i++)
		if (run->arms[i].mode)
			settle(run, s, &run->arms[i]);
	arms_free(run);
}
