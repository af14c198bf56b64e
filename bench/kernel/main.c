// SPDX-License-Identifier: GPL-2.0-only
/*
 * bmm-native - a kernel's own code against the module's, in this process
 *
 *	bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N
 *		[--only=NAME,...] [--backends] [--break-one-word] [--shared]
 *		[--fuzz=SECONDS [--corpus=FILE]] [--case="VARIANT FIELD=N ..."]
 *		[--stock] [--against=DIRECTORY]
 *
 * Each scenario is timed, and the module's results are compared with the
 * kernel's; with --shared no variant is timed: each must write nothing that
 * CPUs share (run.c); with --fuzz generated cases take the place of scenarios
 * (fuzz.c); with --against the code of a second kernel runs in turn with that
 * of the first (side.c).
 *
 * The bulkmm command is the user's front end for this. Writes JSON lines as
 * bmm-bench does. Exit code 0, 1 (something differs), 2 (usage), 3 (something
 * asked for is not available, or a fault in the code).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const struct subject *const subjects[] = { &memmap_subject,
						  &clear_subject, &copy_subject,
						  &vmap_subject,
						  &hotplug_subject };

#define SUBJECTS_NR (sizeof(subjects) / sizeof(subjects[0]))

static bool take_flag(struct run *run, const char *word)
{
	if (!strcmp(word, "--backends"))
		run->backends = true;
	else if (!strcmp(word, "--shared"))
		run->shared = true;
	else if (!strcmp(word, "--break-one-word"))
		run->corrupt = true;
	else if (!strcmp(word, "--stock"))
		run->stock = true;
	else
		return false;
	return true;
}

static bool take_value(struct run *run, const char *word, const char *value)
{
	if (!strncmp(word, "--size=", 7))
		run->size = strtoull(value, NULL, 10);
	else if (!strncmp(word, "--rounds=", 9))
		run->rounds = (unsigned int)strtoul(value, NULL, 10);
	else if (!strncmp(word, "--seed=", 7))
		run->seed = strtoull(value, NULL, 10);
	else if (!strncmp(word, "--only=", 7))
		run->only = value;
	else if (!strncmp(word, "--corpus=", 9))
		run->corpus = value;
	else if (!strncmp(word, "--against=", 10))
		run->against = value;
	else if (!strncmp(word, "--case=", 7))
		run->one_case = value;
	else if (!strncmp(word, "--fuzz=", 7)) {
		run->fuzz = true;
		run->seconds = (unsigned int)strtoul(value, NULL, 10);
	} else
		return false;
	return true;
}

/* Reads the command line; false: it is none. */
static bool parse(struct run *run, int argc, char **argv)
{
	const char *value;
	size_t f;
	int i;

	if (argc < 3)
		return false;
	for (f = 0; f < SUBJECTS_NR; f++)
		if (!strcmp(argv[2], subjects[f]->name))
			run->subject = subjects[f];
	for (i = 3; i < argc; i++) {
		value = strchr(argv[i], '=');
		if (value ? !take_value(run, argv[i], value + 1) :
			    !take_flag(run, argv[i]))
			return false;
	}
	return run->subject && run->size && (run->rounds || run->shared) &&
	       run->seed;
}

/* Whether a comma-separated list contains a name. */
static bool is_listed(const char *list, const char *name)
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
static uint64_t scenario_memory(const struct scenario *s)
{
	uint64_t pages = s->pages * PAGE;

	return s->bytes < pages ? s->bytes : pages;
}

/* Whether a scenario is in a list. */
static bool has_scenario(const struct scenario *list, unsigned int nr,
			 const char *name)
{
	while (nr--)
		if (!strcmp(list[nr].name, name))
			return true;
	return false;
}

/* Loads a kernel, and lists its scenarios. */
static unsigned int load_kernel(struct run *run, const char *directory,
				struct scenario *list)
{
	image_load(directory);
	state_init();
	services_init();
	if (!side_now())
		run->module = module_init();
	return run->subject->setup(list, run->size);
}

int main(int argc, char **argv)
{
	static struct run run;
	static struct scenario list[SCENARIOS_MAX], second_list[SCENARIOS_MAX];
	uint64_t bytes_written = 0;
	unsigned int i, nr, second_nr = 0;

	if (!parse(&run, argc, argv)) {
		fprintf(stderr,
			"usage: bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N ...\n");
		return 2;
	}
	random_seed(run.seed);
	work_pin(); /* before memory is touched */
	faults_catch();
	nr = load_kernel(&run, argv[1], list);
	if (run.against) {
		side_begin();
		second_nr = load_kernel(&run, run.against, second_list);
		side_enter(0);
	}
	if ((run.one_case || run.fuzz) && !run.subject->fields)
		fatal("there is no fuzzer for %s", run.subject->name);
	if (run.one_case && !run.fuzz) {
		fuzz_scenario(&run, &list[0]);
		nr = 1;
	}
	if (run.fuzz) {
		fuzz(&run);
		return run.failed;
	}
	for (i = 0; i < nr; i++) {
		if (run.only ? !is_listed(run.only, list[i].name) :
			       list[i].extra && !run.backends)
			continue;
		if (run.against &&
		    !has_scenario(second_list, second_nr, list[i].name))
			continue;
		if (run.shared) {
			shared_scenario(&run, &list[i]);
			continue;
		}
		run_scenario(&run, &list[i]);
		if (bytes_written < scenario_memory(&list[i]))
			bytes_written = scenario_memory(&list[i]);
	}
	/* now that all memory is allocated */
	printf("{\"event\":\"start\",\"rounds\":%u,\"bytes\":%llu,\"huge_bytes\":%llu,\"hooks\":%zu,\"predictors\":\"%s\"}\n",
	       run.rounds, (unsigned long long)bytes_written,
	       (unsigned long long)buffer_huge_bytes(), sites_nr(),
	       branches_state());
	return run.failed;
}
