// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds stores to memory that CPUs share: once it is loaded, the module may
 * write only to per-CPU memory. A store to anything else faults.
 */
#include <stdio.h>

#include "native.h"

static void shared_by(const struct run *run, const struct scenario *s,
		      const struct arm *arm)
{
	uint64_t clocks = services_clocks();

	module_swap(arm);
	run->family->reset(s);
	module_protect(true);
	run->family->call(s);
	if (run->corrupt && arm->mode->op >= 0)
		module_force(arm->mode, "fastest");
	module_protect(false);
	printf("{\"event\":\"shared\",\"scenario\":\"%s\",\"variant\":\"%s\",\"clocks\":%llu}\n",
	       s->name, arm->name,
	       (unsigned long long)(services_clocks() - clocks));
}

/**
 * shared_scenario() - do a scenario in each mode, with such stores forbidden
 * @run: with @run->corrupt, the module is made to do one
 * @s:   the scenario
 */
void shared_scenario(struct run *run, const struct scenario *s)
{
	size_t i;

	arms_make(run, s);
	if (run->family->enter)
		run->family->enter(s);
	for (i = 0; i < run->nr; i++)
		if (run->arms[i].mode)
			shared_by(run, s, &run->arms[i]);
	arms_free(run);
}
