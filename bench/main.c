// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-bench - time the ways to initialise the struct pages of a device
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
#include "page.h"

struct bench {
	struct options options;
	struct variant variants[VARIANTS_MAX];
	size_t nr;
	void *base;
	size_t count; /* struct pages */
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
	printf("{\"event\": \"start\", \"size\": %llu, \"pages\": %zu, "
	       "\"bytes\": %zu, \"rounds\": %u, \"seed\": %llu, "
	       "\"backend\": \"%s\", \"huge_bytes\": %llu}\n",
	       (unsigned long long)b->options.size, b->count,
	       b->count * sizeof(struct model_page), b->options.rounds,
	       (unsigned long long)b->options.seed, bmm_backend(BMM_STAMP)->name,
	       (unsigned long long)buffer_huge_bytes());
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

			printf("{\"event\": \"sample\", \"variant\": \"%s\", "
			       "\"round\": %u, \"ns\": %llu}\n",
			       v->name, round, (unsigned long long)timed(b, v));
		}
		fflush(stdout);
	}
}

static int verify_all(const struct bench *b)
{
	int wrong = 0;
	size_t i;

	for (i = 0; i < b->nr; i++) {
		bool ok = verify(&b->variants[i], b->base, b->count);

		printf("{\"event\": \"verified\", \"variant\": \"%s\", "
		       "\"ok\": %s}\n",
		       b->variants[i].name, ok ? "true" : "false");
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

int main(int argc, char **argv)
{
	static struct bench b;
	const char *name;

	if (options_parse(&b.options, argc, argv))
		return 2;
	if (b.options.list)
		return list_backends();
	name = b.options.backend;
	if (name &&
	    (!*name || bmm_backend_select(BMM_STAMP, name, strlen(name)))) {
		fprintf(stderr, "bmm-bench: no backend \"%s\" here\n", name);
		return 2;
	}
	b.count = (size_t)(b.options.size / DEVICE_PAGE);
	b.base = buffer_get(b.count * sizeof(struct model_page));
	if (!b.base) {
		fprintf(stderr, "bmm-bench: not enough memory\n");
		return 3;
	}
	b.nr = variants_init(b.variants);
	print_start(&b);
	run_rounds(&b);
	return verify_all(&b);
}
