// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times a scenario: the kernel's function runs once and its result is kept;
 * every variant runs once to warm up; then follow rounds in which every variant
 * runs once, in random order, and its result is compared with the kernel's.
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
	run->subject->enter(s);
}

/* Calls a variant, after a reset; returns how long the call took. */
static uint64_t run_call(const struct run *run, const struct scenario *s,
			 const struct variant *variant)
{
	const struct variant *harness_variant = variant->limit ||
								variant->loop ||
								variant->peer ?
							variant :
							NULL;
	uint64_t start;

	run->subject->reset(s);
	start = bmm_host_clock();
	run->subject->call(s, harness_variant);
	return bmm_host_clock() - start;
}

/*
 * Runs a variant once; returns how long it took. Predictors have learnt nothing
 * of other variants; calls that are short, and so repeated, are preceded by one
 * that is not timed.
 */
uint64_t run_once(const struct run *run, const struct scenario *s,
		  const struct variant *variant)
{
	uint64_t took = 0;
	unsigned int i;

	if (variant->side != side_now())
		run_enter(run, s, variant->side);
	module_swap(variant);
	if (!run->fuzz)
		branches_reset();
	if (s->repeat > 1)
		run_call(run, s, variant);
	for (i = 0; i < s->repeat; i++)
		took += run_call(run, s, variant);
	return took / s->repeat;
}

/* Whether a variant leaves a result that can be compared. */
static bool has_result(const struct scenario *s, const struct variant *variant)
{
	return !variant->limit && !variant->loop && !s->overwritten;
}

/* Whether a variant left the same result as the kernel. */
bool run_right(struct run *run, const struct scenario *s,
	       const struct variant *variant)
{
	bool matches;

	if (!has_result(s, variant))
		return true;
	if (run->corrupt && (variant->mode || (run->against && !variant->side)))
		*run->subject->output(s) ^= 0x10;
	matches = run->subject->right(s);
	if (!matches)
		fprintf(stderr, "%s: %s differs\n", s->name, variant->name);
	return matches;
}

static void print_verdicts(const struct run *run, const struct scenario *s,
			   const bool *matches)
{
	char backend[128];
	size_t i;

	side_enter(0);
	for (i = 0; i < run->nr; i++) {
		const struct variant *variant = &run->variants[i];

		if (has_result(s, variant))
			printf("{\"event\":\"verified\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ok\":%s}\n",
			       s->name, variant->name,
			       matches[i] ? "true" : "false");
		if (!variant->mode || variant->backend)
			continue;
		module_swap(variant);
		module_served(run->subject, variant->mode, backend,
			      sizeof(backend));
		if (!module_hits(run->subject))
			snprintf(backend, sizeof(backend), "kernel");
		if (backend[0])
			printf("{\"event\":\"served\",\"scenario\":\"%s\",\"variant\":\"%s\",\"backend\":\"%s\"}\n",
			       s->name, variant->name, backend);
	}
	fflush(stdout);
}

/* Times all variants of a scenario, and compares their results. */
void run_scenario(struct run *run, const struct scenario *s)
{
	size_t order[VARIANTS_MAX], i;
	bool matches[VARIANTS_MAX];
	unsigned int round;

	variants_make(run, s);
	run->arrays = random_next();
	run_enter(run, s, run->variants[0].side);
	run_once(run, s, &run->variants[0]);
	if (run->subject->keep)
		run->subject->keep(s);
	for (i = 0; i < run->nr; i++) {
		order[i] = i;
		run_once(run, s, &run->variants[i]);
		matches[i] = run_right(run, s, &run->variants[i]);
	}
	for (round = 0; round < run->rounds; round++) {
		order_shuffle(order, run->nr, &run->seed);
		for (i = 0; i < run->nr; i++) {
			const struct variant *variant = &run->variants[order[i]];
			uint64_t ns = run_once(run, s, variant);

			matches[order[i]] &= run_right(run, s, variant);
			printf("{\"event\":\"sample\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ns\":%llu,\"bytes\":%llu}\n",
			       s->name, variant->name, (unsigned long long)ns,
			       (unsigned long long)s->bytes);
		}
	}
	print_verdicts(run, s, matches);
	for (i = 0; i < run->nr; i++)
		run->failed |= !matches[i];
	variants_free(run);
}

static void shared_by(const struct run *run, const struct scenario *s,
		      const struct variant *variant)
{
	uint64_t clocks = services_clocks();

	module_swap(variant);
	run->subject->reset(s);
	module_protect(true);
	run->subject->call(s, NULL);
	if (run->corrupt && variant->mode->op >= 0)
		module_force(variant->mode, "fastest");
	module_protect(false);
	printf("{\"event\":\"shared\",\"scenario\":\"%s\",\"variant\":\"%s\",\"clocks\":%llu}\n",
	       s->name, variant->name,
	       (unsigned long long)(services_clocks() - clocks));
}

/*
 * Does a scenario in each mode, with such stores forbidden; with @run->corrupt,
 * the module is made to do one.
 */
void shared_scenario(struct run *run, const struct scenario *s)
{
	size_t i;

	variants_make(run, s);
	run->subject->enter(s);
	for (i = 0; i < run->nr; i++)
		if (run->variants[i].mode)
			shared_by(run, s, &run->variants[i]);
	variants_free(run);
}
