// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer: runs generated cases of a subject in the kernel's own code and in
 * the module, in a mode and with a backend, and compares the whole results.
 *
 * A case is one line, "VARIANT FIELD=N FIELD=N ...": the corpus is a file of
 * such lines, and one of them reproduces a failure. Nothing else decides what a
 * case does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native.h"

#define SAMPLE_BYTES ((uint64_t)4 << 20) /* least bytes of a measured case */

struct tally {
	uint64_t cases, served_cases, corpus_cases; /* kept: from the corpus */
};

static const struct variant *variant_named(const struct run *run,
					   const char *name)
{
	size_t i;

	for (i = 0; i < run->nr; i++)
		if (run->variants[i].mode &&
		    !strcmp(run->variants[i].name, name))
			return &run->variants[i];
	return NULL;
}

static const struct variant *variant_drawn(const struct run *run)
{
	const struct variant *variant;

	do
		variant = &run->variants[random_next() % run->nr];
	while (!variant->mode);
	return variant;
}

static void write_case(const struct run *run, const struct variant *variant,
		       const uint64_t *value)
{
	const char *const *field = run->subject->fields;
	int at = snprintf(current_step, STEP_MAX, "%s", variant->name);

	for (; *field; field++, value++)
		at += snprintf(current_step + at, STEP_MAX - (size_t)at,
			       " %s=%llu", *field, (unsigned long long)*value);
}

/* Parses the numbers of a line, destroying it; missing ones are 0. */
static void read_numbers(const struct run *run, char *line, uint64_t *value)
{
	const char *const *fields = run->subject->fields;
	char *word, *number, *end;
	size_t f;

	while ((word = strsep(&line, " \n"))) {
		if (!*word)
			continue;
		number = strchr(word, '=');
		if (number)
			*number++ = '\0';
		for (f = 0; fields[f] && strcmp(fields[f], word); f++)
			;
		if (!number || !fields[f])
			reject("a case has no %s; it has %s, ... each with =N",
			       word, fields[0]);
		value[f] = strtoull(number, &end, 10);
		if (*end || end == number)
			reject("%s of a case is a number, not '%s'", word,
			       number);
	}
}

/* Parses a case, destroying the line; returns the name of its variant. */
static const char *read_case(const struct run *run, char *line, uint64_t *value)
{
	const char *name = strsep(&line, " \n");

	if (!variants_known(run->subject, name))
		reject("a case begins with a variant, not with %s: there are %s",
		       *name ? name : "a blank", variants_list(run->subject));
	if (line)
		read_numbers(run, line, value);
	return name;
}

static void build_scenario(const struct run *run, struct scenario *s,
			   const uint64_t *value)
{
	*s = (struct scenario){ .name = "case", .repeat = 1 };
	if (!run->subject->build(s, value))
		reject("a number of the case is out of range: %s",
		       current_step[0] ? current_step : run->one_case);
}

/*
 * Makes a scenario of the one case, to measure it in all variants, whichever it
 * names.
 */
void fuzz_scenario(const struct run *run, struct scenario *s)
{
	uint64_t value[FIELDS_MAX] = { 0 };
	char *line = strdup(run->one_case);

	read_case(run, line, value);
	free(line);
	build_scenario(run, s, value);
	if (!s->bytes)
		reject("the case writes nothing: %s", run->one_case);
	s->repeat = (unsigned int)(1 + SAMPLE_BYTES / s->bytes);
}

/* Runs the kernel, then the module, and compares. */
static void run_case(struct run *run, struct tally *tally,
		     const struct variant *variant, const uint64_t *value)
{
	static struct scenario s;
	uint64_t before;

	write_case(run, variant, value);
	build_scenario(run, &s, value);
	run->subject->enter(&s);
	run_once(run, &s, &run->variants[0]);
	run->subject->keep(&s);
	before = module_hits(run->subject);
	run_once(run, &s, variant);
	tally->served_cases += module_hits(run->subject) != before;
	tally->cases++;
	if (!run_right(run, &s, variant)) {
		run->failed = true;
		printf("{\"event\":\"differs\",\"case\":\"%s\"}\n",
		       current_step);
	}
	current_step[0] = '\0';
}

/* Skips a case of a backend that this CPU lacks. */
static void run_line(struct run *run, struct tally *tally, char *line)
{
	uint64_t value[FIELDS_MAX] = { 0 };
	const struct variant *variant = variant_named(run, read_case(run, line,
								     value));

	if (variant)
		run_case(run, tally, variant, value);
}

static void run_corpus(struct run *run, struct tally *tally)
{
	FILE *file = fopen(run->corpus, "re");
	char line[STEP_MAX];

	if (!file)
		fatal("%s: %s", run->corpus, strerror(errno));
	while (!run->failed && fgets(line, sizeof(line), file))
		if (!strchr("#\n", line[0]))
			run_line(run, tally, line);
	fclose(file);
	tally->corpus_cases = tally->cases;
}

static void run_one(struct run *run, struct tally *tally)
{
	char *line = strdup(run->one_case);

	run_line(run, tally, line);
	free(line);
	if (!tally->cases)
		fatal("the variant is not available here: %s", run->one_case);
}

static void run_generated(struct run *run, struct tally *tally)
{
	uint64_t value[FIELDS_MAX];
	time_t end = time(NULL) + (time_t)run->seconds;

	while (!run->failed && time(NULL) < end) {
		/* a case that seeds its own array must not decide the next one */
		random_seed(order_random(&run->seed));
		memset(value, 0, sizeof(value));
		run->subject->draw(value);
		run_case(run, tally, variant_drawn(run), value);
	}
}

/* Runs the corpus, then generated cases, up to the first difference. */
void fuzz(struct run *run)
{
	uint64_t value[FIELDS_MAX] = { 0 };
	struct tally tally = { 0 };
	struct scenario scenario = { .repeat = 1 };

	if (!run->module)
		fatal("a fuzzer needs a module");
	run->subject->draw(value);
	run->subject->build(&scenario, value);
	run->backends = true;
	variants_make(run, &scenario);
	services_quiet(); /* no messages about fallbacks */
	if (run->one_case) {
		run_one(run, &tally);
	} else {
		if (run->corpus)
			run_corpus(run, &tally);
		run_generated(run, &tally);
	}
	printf("{\"event\":\"fuzz\",\"cases\":%llu,\"kept\":%llu,\"served\":%llu}\n",
	       (unsigned long long)tally.cases,
	       (unsigned long long)tally.corpus_cases,
	       (unsigned long long)tally.served_cases);
}
