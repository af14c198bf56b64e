// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times a scenario: the kernel's function runs once and its result is kept;
 * every arm runs once to warm up; then follow rounds in which every arm runs
 * once, in random order, and its result is compared with the kernel's.
 *
 * Or finds stores to memory that CPUs share: once it is loaded, the module may
 * write only to per-CPU memory. A store to anything else faults.
 */
#include <stdio.h>

#include "native.h"

/* Enters a side, and prepares a scenario there. */
static void run_enter(const struct run *run, const struct scenario *s,
		      unsigned int side)
{
	side_enter(side);
	random_seed(run->arrays);
	run->family->enter(s);
}

/* Runs an arm once; returns how long it took. */
uint64_t run_once(const struct run *run, const struct scenario *s,
		  const struct arm *arm)
{
	const struct arm *own = arm->limit || arm->loop || arm->peer ? arm :
								       NULL;
	uint64_t took = 0, begun;
	unsigned int i;

	if (arm->side != side_now())
		run_enter(run, s, arm->side);
	module_swap(arm);
	for (i = 0; i < s->repeat; i++) {
		run->family->reset(s);
		begun = bmm_host_clock();
		run->family->call(s, own);
		took += bmm_host_clock() - begun;
	}
	return took / s->repeat;
}

/* Whether an arm leaves a result that can be compared. */
static bool has_result(const struct scenario *s, const struct arm *arm)
{
	return !arm->limit && !arm->loop && !s->overwritten;
}

/* Whether an arm left the same result as the kernel. */
bool run_right(struct run *run, const struct scenario *s, const struct arm *arm)
{
	bool same;

	if (!has_result(s, arm))
		return true;
	if (run->corrupt && (arm->mode || (run->against && !arm->side)))
		*run->family->output(s) ^= 0x10;
	same = run->family->right(s);
	if (!same)
		fprintf(stderr, "%s: %s differs\n", s->name, arm->name);
	return same;
}

static void print_verdicts(const struct run *run, const struct scenario *s,
			   const bool *same)
{
	char served[128];
	size_t i;

	side_enter(0);
	for (i = 0; i < run->nr; i++) {
		const struct arm *arm = &run->arms[i];

		if (has_result(s, arm))
			printf("{\"event\":\"verified\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ok\":%s}\n",
			       s->name, arm->name, same[i] ? "true" : "false");
		if (!arm->mode || arm->backend)
			continue;
		module_swap(arm);
		module_served(run->family, arm->mode, served, sizeof(served));
		if (!module_hits(run->family))
			snprintf(served, sizeof(served), "kernel");
		if (served[0])
			printf("{\"event\":\"served\",\"scenario\":\"%s\",\"variant\":\"%s\",\"backend\":\"%s\"}\n",
			       s->name, arm->name, served);
	}
	fflush(stdout);
}

/* Times all arms of a scenario, and compares their results. */
void run_scenario(struct run *run, const struct scenario *s)
{
	size_t order[ARMS_MAX], i;
	bool same[ARMS_MAX];
	unsigned int round;

	arms_make(run, s);
	run->arrays = random_next();
	run_enter(run, s, run->arms[0].side);
	run_once(run, s, &run->arms[0]);
	if (run->family->keep)
		run->family->keep(s);
	for (i = 0; i < run->nr; i++) {
		order[i] = i;
		run_once(run, s, &run->arms[i]);
		same[i] = run_right(run, s, &run->arms[i]);
	}
	for (round = 0; round < run->rounds; round++) {
		order_shuffle(order, run->nr, &run->seed);
		for (i = 0; i < run->nr; i++) {
			const struct arm *arm = &run->arms[order[i]];
			uint64_t ns = run_once(run, s, arm);

			same[order[i]] &= run_right(run, s, arm);
			printf("{\"event\":\"sample\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ns\":%llu,\"bytes\":%llu}\n",
			       s->name, arm->name, (unsigned long long)ns,
			       (unsigned long long)s->bytes);
		}
	}
	print_verdicts(run, s, same);
	for (i = 0; i < run->nr; i++)
		run->failed |= !same[i];
	arms_free(run);
}

static void shared_by(const struct run *run, const struct scenario *s,
		      const struct arm *arm)
{
	uint64_t clocks = services_clocks();

	module_swap(arm);
	run->family->reset(s);
	module_protect(true);
	run->family->call(s, NULL);
	if (run->corrupt && arm->mode->op >= 0)
		module_force(arm->mode, "fastest");
	module_protect(false);
	printf("{\"event\":\"shared\",\"scenario\":\"%s\",\"variant\":\"%s\",\"clocks\":%llu}\n",
	       s->name, arm->name,
	       (unsigned long long)(services_clocks() - clocks));
}

/*
 * Does a scenario in each mode, with such stores forbidden; with @run->corrupt,
 * the module is made to do one.
 */
void shared_scenario(struct run *run, const struct scenario *s)
{
	size_t i;

	arms_make(run, s);
	run->family->enter(s);
	for (i = 0; i < run->nr; i++)
		if (run->arms[i].mode)
			shared_by(run, s, &run->arms[i]);
	arms_free(run);
}
