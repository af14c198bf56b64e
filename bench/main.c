// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-bench - time the ways to write bulk memory
 *
 * One warm-up round, then rounds in each of which every variant runs once,
 * in random order, so that what drifts on the machine hits all of them
 * alike. Writes JSON lines: one that describes the run, one per sample, one
 * per verified variant. Exit code 0, 1 (a variant wrote something wrong), 2
 * (usage), 3 (no memory).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"

struct bench {
	struct options options;
	const struct subject *subject;
	struct variant variants[VARIANTS_MAX];
	size_t nr;
	void *base;
	size_t count; /* units of the subject */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t timed(const struct bench *b, const struct variant *v)
{
	uint64_t start = now_ns();

	v->run(v, b->base, b->count);
	return now_ns() - start;
}

static void print_start(const struct bench *b)
{
	printf("{\"event\": \"start\", \"size\": %llu, \"bytes\": %zu, "
	       "\"rounds\": %u, \"seed\": %llu, \"huge_bytes\": %llu, ",
	       (unsigned long long)b->options.size, b->count * b->subject->unit,
	       b->options.rounds, (unsigned long long)b->options.seed,
	       (unsigned long long)buffer_huge_bytes());
	b->subject->describe(b->count);
	puts("}");
}

/* The members that say which variant an event is about. */
static void print_event(const char *event, const struct variant *v)
{
	printf("{\"event\": \"%s\", \"scenario\": \"%s\", "
	       "\"variant\": \"%s\", ",
	       event, v->scenario, v->name);
}

static void run_rounds(const struct bench *b)
{
	size_t order[VARIANTS_MAX], i;
	uint64_t state = b->options.seed;
	unsigned int round;

	for (i = 0; i < b->nr; i++) {
		order[i] = i;
		timed(b, &b->variants[i]);
	}
	for (round = 0; round < b->options.rounds; round++) {
		order_shuffle(order, b->nr, &state);
		for (i = 0; i < b->nr; i++) {
			const struct variant *v = &b->variants[order[i]];
			uint64_t ns = timed(b, v);

			print_event("sample", v);
			printf("\"round\": %u, \"bytes\": %zu, \"ns\": %llu}\n",
			       round, b->subject->bytes(v, b->count),
			       (unsigned long long)ns);
		}
		fflush(stdout);
	}
}

/* What is written before a use is verified where nothing follows it. */
static int verify_all(const struct bench *b)
{
	int wrong = 0;
	size_t i;

	for (i = 0; i < b->nr; i++) {
		const struct variant *v = &b->variants[i];
		bool ok;

		if (v->use != USE_NONE)
			continue;
		ok = b->subject->verify(v, b->base, b->count);
		print_event("verified", v);
		printf("\"ok\": %s}\n", ok ? "true" : "false");
		fflush(stdout);
		wrong |= !ok;
	}
	return wrong;
}

static int list_backends(void)
{
	size_t i;

	for (i = 0; i < bmm_backends_nr; i++)
		if (bmm_backend_can(bmm_backends[i], BMM_STAMP))
			puts(bmm_backends[i]->name);
	return 0;
}

static int select_backend(const char *name)
{
	if (!name ||
	    (*name && !bmm_backend_select(BMM_STAMP, name, strlen(name))))
		return 0;
	fprintf(stderr, "bmm-bench: no backend \"%s\" here\n", name);
	return -1;
}

static const struct subject *find_subject(const char *name)
{
	if (!strcmp(name, memmap_subject.name))
		return &memmap_subject;
	if (!strcmp(name, clear_subject.name))
		return &clear_subject;
	fprintf(stderr, "bmm-bench: %s: not memmap or clear\n", name);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (options_parse(&b.options, argc, argv))
		return 2;
	if (b.options.list)
		return list_backends();
	b.subject = find_subject(b.options.subject);
	if (!b.subject || select_backend(b.options.backend))
		return 2;
	b.count = (size_t)(b.options.size / b.subject->per_unit);
	b.base = buffer_get(b.count * b.subject->unit);
	if (!b.base) {
		fprintf(stderr, "bmm-bench: not enough memory\n");
		return 3;
	}
	b.nr = b.subject->init(b.variants, &b.options);
	print_start(&b);
	run_rounds(&b);
	return verify_all(&b);
}
