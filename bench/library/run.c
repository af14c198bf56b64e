// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * In each scenario every variant runs to warm up, then come rounds in each of
 * which every variant runs once, in random order, so that drift of the machine
 * affects all alike. Finally their output is verified.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "select.h"

/* Without the parts of the extents that misaligned operations omit. */
static size_t sample_bytes(const struct variant *v)
{
	size_t cut = v->shifted ? v->bytes / v->extent * SHIFT_CUT : 0;

	return (v->bytes - cut) * v->times;
}

/*
 * Cold: the memory that was written longest ago. Hot: always the same memory,
 * which one pass brings back into the cache after another variant ran.
 */
static char *place_sample(struct bench *b, const struct variant *v)
{
	struct variant pass = *v;
	char *base = b->buffer.base;

	if (v->times > 1) {
		pass.times = 1;
		walk(&pass, base);
		return base;
	}
	if (b->cursor + v->bytes > b->buffer.bytes)
		b->cursor = 0;
	base += b->cursor;
	b->cursor += v->bytes;
	return base;
}

/*
 * Forces a backend for all operations that it supports, or (NULL) the fastest,
 * to be measured again; returns the number of operations.
 */
unsigned int run_select(const struct subject *subject, const char *name)
{
	unsigned int op, done = 0;

	for (op = 0; op < BMM_OPS; op++)
		if (subject->ops & 1U << op)
			done += !bmm_backend_select((enum bmm_op)op, name,
						    name ? strlen(name) : 0);
	return done;
}

/* The backend that the command line forces, or the fastest, not measured yet. */
static void forget_selection(const struct bench *b)
{
	run_select(b->subject, NULL);
	if (b->options.backend)
		run_select(b->subject, b->options.backend);
}

static uint64_t time_sample(struct bench *b, const struct variant *v)
{
	uint64_t start;
	char *base;

	if (v->fresh)
		forget_selection(b);
	else
		bmm_measure();
	base = place_sample(b, v);
	if (v->threads > 1)
		threads_gather(v->threads);
	start = bmm_host_clock();
	walk(v, base);
	return bmm_host_clock() - start;
}

/* The members that identify an event's variant. */
static void print_event(const char *event, const struct variant *v)
{
	printf("{\"event\": \"%s\", \"scenario\": \"%s\", "
	       "\"variant\": \"%s\", ",
	       event, v->scenario, v->name);
}

/* With several threads another kind of stores may be the fastest. */
static void choose_limit(struct bench *b, struct variant *v)
{
	const struct limit *best = v->limit;
	uint64_t shortest = UINT64_MAX, ns;
	unsigned int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; (v->limit = limit_at(v->op, k)); k++) {
			ns = time_sample(b, v);
			if (ns >= shortest)
				continue;
			shortest = ns;
			best = v->limit;
		}
	v->limit = best;
}

static void warm_up(struct bench *b, struct variant *v)
{
	if (v->limit && v->threads > 1)
		choose_limit(b, v);
	/* Longer samples warm up by themselves. */
	if (v->bytes <= SAMPLE)
		time_sample(b, v);
}

static void run_round(struct bench *b, const struct variant *variants,
		      const size_t *order, size_t nr, unsigned int round)
{
	for (size_t i = 0; i < nr; i++) {
		const struct variant *v = &variants[order[i]];
		uint64_t ns = time_sample(b, v);

		print_event("sample", v);
		printf("\"round\": %u, \"bytes\": %zu, \"ns\": %llu}\n", round,
		       sample_bytes(v), (unsigned long long)ns);
	}
	fflush(stdout);
}

/* Variants that use the memory are verified in scenarios without a use. */
static int verify_all(struct bench *b, const struct variant *variants, size_t nr)
{
	int failed = 0;

	for (size_t i = 0; i < nr; i++) {
		bool ok;

		if (variants[i].use != USE_NONE)
			continue;
		ok = verify(&variants[i], &b->buffer);
		print_event("verified", &variants[i]);
		printf("\"ok\": %s}\n", ok ? "true" : "false");
		fflush(stdout);
		failed |= !ok;
	}
	return failed;
}

/* Print what was selected: a backend, or the limit of several threads. */
static void print_served(const struct variant *v)
{
	if (v->fresh || v->method || v->backend || (v->limit && v->threads < 2))
		return;
	print_event("served", v);
	printf("\"backend\": \"%s\"}\n",
	       v->limit ? limit_name(v->limit) :
			  bmm_selected(bmm_serves(v->op, v->len), v->len,
				       v->shifted)
				  ->name);
}

static int run_scenario(struct bench *b, struct variant *variants, size_t nr)
{
	size_t *order = require_memory(calloc(nr, sizeof(*order))), i;
	unsigned int round;

	for (i = 0; i < nr; i++) {
		order[i] = i;
		warm_up(b, &variants[i]);
	}
	for (round = 0; round < b->options.rounds; round++) {
		order_shuffle(order, nr, &b->random);
		run_round(b, variants, order, nr, round);
	}
	free(order);
	for (i = 0; i < nr; i++)
		print_served(&variants[i]);
	return b->options.unverified ? 0 : verify_all(b, variants, nr);
}

/* Runs all scenarios; returns 1 if a variant wrote something wrong. */
int run_all(struct bench *b)
{
	struct variant *v = b->variants.at, *end = v + b->variants.nr, *next;
	int failed = 0;

	forget_selection(b);
	for (; v < end; v = next) {
		for (next = v; next < end && next->scenario == v->scenario;)
			next++;
		failed |= run_scenario(b, v, (size_t)(next - v));
	}
	return !!failed;
}
