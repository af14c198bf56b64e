// SPDX-License-Identifier: GPL-2.0-only
/*
 * bmm-native - a kernel's own code against the module's, in this process
 *
 *	bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N
 *		[--only=NAME,...] [--backends] [--break-one-word] [--shared]
 *		[--fuzz=SECONDS [--corpus=FILE]] [--case="ARM FIELD=N ..."]
 *		[--stock] [--against=DIRECTORY]
 *
 * Each scenario is timed, and the module's results are compared with the
 * kernel's (run.c); with --shared no arm is timed: each must write nothing that
 * CPUs share (shared.c); with --fuzz generated cases take the place of
 * scenarios (fuzz.c); with --against the code of a second kernel runs in turn
 * with that of the first (side.c).
 *
 * Writes JSON lines as bmm-bench does. Exit code 0, 1 (something differs), 2
 * (usage), 3 (something asked for is not available, or a fault in the code).
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

/* Whether a comma-separated list contains a name. */
static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name), part;

	for (; *list; list += part + (list[part] == ',')) {
		part = strcspn(list, ",");
		if (part == length && !memcmp(list, name, length))
			return true;
	}
	return false;
}

/* Bytes that a scenario writes, those that it writes repeatedly counted once. */
static uint64_t memory_of(const struct scenario *s)
{
	uint64_t pages = s->pages * PAGE;

	return s->bytes < pages ? s->bytes : pages;
}

/* Whether a scenario is in a list. */
static bool has(const struct scenario *list, unsigned int nr, const char *name)
{
	while (nr--)
		if (!strcmp(list[nr].name, name))
			return true;
	return false;
}

/* Loads a kernel, and lists its scenarios. */
static unsigned int load(struct run *run, const char *directory,
			 struct scenario *list)
{
	image_load(directory);
	state_init();
	services_init();
	if (!side_now())
		run->module = module_init();
	return run->family->setup(list, run->size);
}

int main(int argc, char **argv)
{
	static struct run run;
	static struct scenario list[SCENARIOS_MAX], others[SCENARIOS_MAX];
	uint64_t written = 0;
	unsigned int i, nr, others_nr = 0;

	if (!run_parse(&run, argc, argv)) {
		fprintf(stderr,
			"usage: bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N ...\n");
		return 2;
	}
	random_seed(run.seed);
	work_pin(); /* before memory is touched */
	faults_catch();
	nr = load(&run, argv[1], list);
	if (run.against) {
		side_begin();
		others_nr = load(&run, run.against, others);
		side_enter(0);
	}
	if (run.one_case && !run.fuzz) {
		fuzz_scenario(&run, &list[0]);
		nr = 1;
	}
	if (run.fuzz) {
		fuzz(&run);
		return run.failed;
	}
	for (i = 0; i < nr; i++) {
		if (run.only ? !listed(run.only, list[i].name) :
			       list[i].extra && !run.backends)
			continue;
		if (run.against && !has(others, others_nr, list[i].name))
			continue;
		if (run.shared) {
			shared_scenario(&run, &list[i]);
			continue;
		}
		run_scenario(&run, &list[i]);
		if (written < memory_of(&list[i]))
			written = memory_of(&list[i]);
	}
	/* now that all memory is allocated */
	printf("{\"event\":\"start\",\"rounds\":%u,\"bytes\":%llu,\"huge_bytes\":%llu,\"hooks\":%zu}\n",
	       run.rounds, (unsigned long long)written,
	       (unsigned long long)buffer_huge_bytes(), sites_nr());
	return run.failed;
}
