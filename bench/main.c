// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-bench - time the ways to write bulk memory
 *
 * Scenario by scenario, as if each were a program of its own: the core goes
 * back to its defaults, every variant runs to warm up, then come rounds in
 * each of which every variant runs once, in random order, so that what drifts
 * on the machine hits all of them alike. Last their output is verified.
 *
 * Writes JSON lines: one that describes the run, one per sample, one per
 * operation of a scenario that says which backend served at its end, one per
 * verified variant. Exit code 0, 1 (a variant wrote something wrong), 2
 * (usage), 3 (no memory).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "turn.h"

/*
 * The core tries its backends on the first work it gets, and goes on with the
 * best: what a variant that leaves it the choice writes before it is timed.
 */
#define WARM_UP ((size_t)512 << 20)

struct bench {
	struct options options;
	const struct subject *subject;
	struct buffer buffer;
	struct variant variants[VARIANTS_MAX];
	size_t nr;
	size_t count;  /* units of the subject */
	size_t cursor; /* the unit that the next cold sample starts at */
	uint64_t random;
};

static const struct subject *const subjects[] = {
	&memmap_subject,
	&clear_subject,
	&copy_subject,
};

#define SUBJECTS_NR (sizeof(subjects) / sizeof(subjects[0]))

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static size_t sample_bytes(const struct bench *b, const struct variant *v)
{
	return v->units * v->times * b->subject->unit;
}

/*
 * Cold: the units that were written longest ago. Hot: always the same, which
 * one pass brings back into the cache after another variant's turn.
 */
static char *place_sample(struct bench *b, const struct variant *v)
{
	struct variant pass = *v;
	char *base = b->buffer.base;

	if (v->times > 1) {
		pass.times = 1;
		pass.run(&pass, base, v->units);
		return base;
	}
	if (b->cursor + v->units > b->count)
		b->cursor = 0;
	base += b->cursor * b->subject->unit;
	b->cursor += v->units;
	return base;
}

static uint64_t timed(struct bench *b, const struct variant *v)
{
	char *base = place_sample(b, v);
	uint64_t start = now_ns();

	v->run(v, base, v->units);
	return now_ns() - start;
}

static void print_start(const struct bench *b)
{
	size_t bytes = b->count * b->subject->unit;

	printf("{\"event\": \"start\", \"size\": %llu, \"bytes\": %zu, "
	       "\"rounds\": %u, \"seed\": %llu, \"huge_bytes\": %llu, ",
	       (unsigned long long)b->options.size,
	       b->subject->sourced ? 2 * bytes : bytes, b->options.rounds,
	       (unsigned long long)b->options.seed,
	       (unsigned long long)buffer_huge_bytes());
	b->subject->describe(&b->options, b->count);
	puts("}");
}

/* The members that say which variant an event is about. */
static void print_event(const char *event, const struct variant *v)
{
	printf("{\"event\": \"%s\", \"scenario\": \"%s\", "
	       "\"variant\": \"%s\", ",
	       event, v->scenario, v->name);
}

static void warm_up(struct bench *b, const struct variant *v)
{
	size_t bytes = 0;

	do {
		timed(b, v);
		bytes += sample_bytes(b, v);
	} while (v->chooses && bytes < WARM_UP);
}

static void run_round(struct bench *b, const struct variant *variants,
		      const size_t *order, size_t nr, unsigned int round)
{
	for (size_t i = 0; i < nr; i++) {
		const struct variant *v = &variants[order[i]];
		uint64_t ns = timed(b, v);

		print_event("sample", v);
		printf("\"round\": %u, \"bytes\": %zu, \"ns\": %llu}\n", round,
		       sample_bytes(b, v), (unsigned long long)ns);
	}
	fflush(stdout);
}

/* What is written before a use is verified where nothing follows it. */
static int verify_all(const struct bench *b, const struct variant *variants,
		      size_t nr)
{
	int wrong = 0;

	for (size_t i = 0; i < nr; i++) {
		bool ok;

		if (variants[i].use != USE_NONE)
			continue;
		ok = verify(b->subject, &variants[i], &b->buffer);
		print_event("verified", &variants[i]);
		printf("\"ok\": %s}\n", ok ? "true" : "false");
		fflush(stdout);
		wrong |= !ok;
	}
	return wrong;
}

/*
 * Force a backend for all operations of the subject that it has; NULL leaves
 * the choice to the core again. Returns for how many it was done.
 */
static unsigned int select_backend(const struct subject *subject,
				   const char *name)
{
	unsigned int op, done = 0;

	for (op = 0; op < BMM_OPS; op++)
		if (subject->ops & 1U << op)
			done += !bmm_backend_select((enum bmm_op)op, name,
						    name ? strlen(name) : 0);
	return done;
}

static const char *const op_names[BMM_OPS] = {
	[BMM_STAMP] = "stamp",
	[BMM_COPY] = "copy",
	[BMM_CLEAR] = "cached",
	[BMM_CLEAR_STREAMING] = "streaming",
};

/* What the core had come to choose, which is what was measured. */
static void print_served(const struct subject *subject, const struct variant *v)
{
	enum bmm_op op;

	for (op = 0; op < BMM_OPS; op++) {
		if (!(subject->ops & 1U << op))
			continue;
		print_event("served", v);
		printf("\"op\": \"%s\", \"backend\": \"%s\"}\n", op_names[op],
		       bmm_backend_serving(op, v->extent, -1)->name);
	}
}

static int run_scenario(struct bench *b, const struct variant *variants,
			size_t nr)
{
	size_t order[VARIANTS_MAX], i;
	unsigned int round;

	select_backend(b->subject, NULL);
	if (b->options.backend)
		select_backend(b->subject, b->options.backend);
	for (i = 0; i < nr; i++) {
		order[i] = i;
		warm_up(b, &variants[i]);
	}
	for (round = 0; round < b->options.rounds; round++) {
		order_shuffle(order, nr, &b->random);
		run_round(b, variants, order, nr, round);
	}
	print_served(b->subject, variants);
	return verify_all(b, variants, nr);
}

static int run_all(struct bench *b)
{
	const struct variant *v = b->variants, *end = v + b->nr, *next;
	int wrong = 0;

	for (; v < end; v = next) {
		for (next = v; next < end && next->scenario == v->scenario;)
			next++;
		wrong |= run_scenario(b, v, (size_t)(next - v));
	}
	return wrong;
}

static bool serves(const struct bmm_backend *backend,
		   const struct subject *subject)
{
	for (unsigned int op = 0; op < BMM_OPS; op++)
		if (subject->ops & 1U << op &&
		    bmm_backend_can(backend, (enum bmm_op)op))
			return true;
	return false;
}

static int list_backends(const struct subject *subject)
{
	for (size_t i = 0; i < bmm_backends_nr; i++)
		if (serves(bmm_backends[i], subject))
			puts(bmm_backends[i]->name);
	return 0;
}

static int check_backend(const struct subject *subject, const char *name)
{
	if (!name || (*name && select_backend(subject, name)))
		return 0;
	fprintf(stderr, "bmm-bench: no backend \"%s\" here for %s\n", name,
		subject->name);
	return -1;
}

static int check_extents(const struct subject *subject,
			 const struct options *options)
{
	if (!subject->by_extent || options->extents_nr)
		return 0;
	fprintf(stderr, "bmm-bench: %s: give --extent\n", subject->name);
	return -1;
}

static const struct subject *find_subject(const char *name)
{
	for (size_t i = 0; i < SUBJECTS_NR; i++)
		if (!strcmp(name, subjects[i]->name))
			return subjects[i];
	fprintf(stderr, "bmm-bench: %s: not memmap, clear or copy\n", name);
	return NULL;
}

static int get_memory(struct bench *b)
{
	b->count = (size_t)(b->options.size / b->subject->per_unit);
	if (!buffer_get(&b->buffer, b->count * b->subject->unit,
			b->subject->sourced))
		return 0;
	fprintf(stderr, "bmm-bench: not enough memory\n");
	return -1;
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (options_parse(&b.options, argc, argv))
		return 2;
	b.subject = find_subject(b.options.subject);
	if (!b.subject)
		return 2;
	if (b.options.list)
		return list_backends(b.subject);
	if (check_backend(b.subject, b.options.backend) ||
	    check_extents(b.subject, &b.options))
		return 2;
	if (get_memory(&b))
		return 3;
	b.random = b.options.seed;
	b.nr = b.subject->init(b.variants, &b.options, &b.buffer);
	print_start(&b);
	return run_all(&b);
}
