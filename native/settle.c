// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds stores to memory that CPUs share. Once the module is settled, it may
 * write only to per-CPU memory, and reads the clock only now and then. A store
 * to anything else faults.
 */
#include <stdio.h>

#include "native.h"

enum {
	MOST = 16 /* times as many rounds, for what is measured by a little each */
};

static uint64_t calls(const struct scenario *s)
{
	return s->bytes / (PAGE << s->order);
}

/* Runs a round; returns whether each call read the clock, so that it measured. */
static bool measures(const struct run *run, const struct scenario *s)
{
	uint64_t clocks;

	run->family->reset(s);
	clocks = services_clocks();
	run->family->call(s);
	return services_clocks() - clocks >= calls(s);
}

static void settle(const struct run *run, const struct scenario *s,
		   const struct arm *arm)
{
	bool measured = true;
	uint64_t clocks;
	unsigned int i;

	module_swap(arm);
	for (i = 0; i < run->rounds || (measured && i < MOST * run->rounds); i++)
		measured = measures(run, s);
	clocks = services_clocks();
	module_protect(true);
	run->family->call(s);
	module_protect(false);
	printf("{\"event\":\"settled\",\"scenario\":\"%s\",\"variant\":\"%s\",\"calls\":%llu,\"clocks\":%llu}\n",
	       s->name, arm->name, (unsigned long long)calls(s),
	       (unsigned long long)(services_clocks() - clocks));
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
