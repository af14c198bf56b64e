// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-bench - time the ways to write bulk memory
 *
 * Each scenario runs as if it were a program of its own: the core forgets what
 * it has measured, every variant runs to warm up, then come rounds in each of
 * which every variant runs once, in random order, so that drift of the machine
 * affects all alike. Finally their output is verified.
 *
 * Writes JSON lines: one that describes the run, one per sample, one for each
 * picked backend or kind of stores, one per verified variant. Exit code 0, 1 (a
 * variant wrote something wrong), 2 (usage), 3 (no memory).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "serve.h"

/*
 * Samples since the core forgot, after which a variant is timed even if its
 * backend is not chosen yet.
 */
#define SETTLE_MAX 96U

/* Times the last-level cache: memory that is walked through is always cold. */
#define COLD 4U

struct bench {
	struct options options;
	const struct subject *subject;
	struct buffer buffer;
	struct variants variants;
	size_t cursor;	       /* offset of the next cold sample */
	unsigned int settling; /* samples since the core forgot */
	uint64_t random;
	unsigned int cpu;
};

static const struct subject *const subjects[] = {
	&memmap_subject,
	&clear_subject,
	&copy_subject,
	&first_use_subject,
};

#define SUBJECTS_NR (sizeof(subjects) / sizeof(subjects[0]))

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
 * Force a backend for all operations of the subject that it supports; with NULL
 * the core measures again. Returns the number of operations.
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

static void forget(struct bench *b)
{
	b->settling = 0;
	select_backend(b->subject, NULL);
	if (b->options.backend)
		select_backend(b->subject, b->options.backend);
}

/*
 * Work until the backend is chosen, so that the pick is what is timed. The use
 * of an extent affects the choice only if a cache can hold the extent.
 */
static void settle(struct bench *b, const struct variant *v)
{
	struct variant work = *v;

	if (v->extent > SAMPLE)
		work.use = USE_NONE;
	for (; !bmm_serving(v->op, v->len) && b->settling < SETTLE_MAX;
	     b->settling++)
		walk(&work, place_sample(b, v));
}

static uint64_t timed(struct bench *b, const struct variant *v)
{
	uint64_t start;
	char *base;

	if (v->fresh)
		forget(b);
	else if (variant_picks(v))
		settle(b, v);
	base = place_sample(b, v);
	if (v->threads > 1)
		threads_gather(v->threads);
	start = bmm_host_clock();
	walk(v, base);
	return bmm_host_clock() - start;
}

static void print_start(const struct bench *b)
{
	size_t bytes = b->buffer.bytes;

	printf("{\"event\": \"start\", \"size\": %llu, \"bytes\": %zu, "
	       "\"llc\": %zu, \"cpus\": %u, \"cpu\": %u, \"rounds\": %u, "
	       "\"seed\": %llu, \"huge_bytes\": %llu, ",
	       (unsigned long long)b->options.size,
	       b->subject->sourced ? 2 * bytes : bytes, buffer_cache_bytes(),
	       threads_nr(), b->cpu, b->options.rounds,
	       (unsigned long long)b->options.seed,
	       (unsigned long long)buffer_huge_bytes());
	b->subject->describe(&b->options);
	puts("}");
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
	uint64_t least = UINT64_MAX, ns;
	unsigned int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; (v->limit = limit_at(v->op, k)); k++) {
			ns = timed(b, v);
			if (ns >= least)
				continue;
			least = ns;
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
		timed(b, v);
}

static void run_round(struct bench *b, const struct variant *variants,
		      const size_t *order, size_t nr, unsigned int round)
{
	for (size_t i = 0; i < nr; i++) {
		const struct variant *v = &variants[order[i]];
		uint64_t ns = timed(b, v);

		print_event("sample", v);
		printf("\"round\": %u, \"bytes\": %zu, \"ns\": %llu}\n", round,
		       sample_bytes(v), (unsigned long long)ns);
	}
	fflush(stdout);
}

/* Variants that use the memory are verified in scenarios without a use. */
static int verify_all(struct bench *b, const struct variant *variants, size_t nr)
{
	int wrong = 0;

	for (size_t i = 0; i < nr; i++) {
		bool ok;

		if (variants[i].use != USE_NONE)
			continue;
		if (variants[i].fresh)
			forget(b);
		ok = verify(&variants[i], &b->buffer);
		print_event("verified", &variants[i]);
		printf("\"ok\": %s}\n", ok ? "true" : "false");
		fflush(stdout);
		wrong |= !ok;
	}
	return wrong;
}

static const char *const op_names[BMM_OPS] = {
	[BMM_STAMP] = "stamp",
	[BMM_COPY] = "cached",
	[BMM_COPY_STREAMING] = "streaming",
	[BMM_CLEAR] = "cached",
	[BMM_CLEAR_STREAMING] = "streaming",
};

/* Print the pick, which is what was measured. */
static void print_served(const struct variant *v)
{
	const char *op = v->limit ? "limit" : op_names[v->op];

	if (v->fresh || (!variant_picks(v) && !(v->limit && v->threads > 1)))
		return;
	print_event("served", v);
	printf("\"op\": \"%s", op);
	if (v->threads > 1)
		printf("-%ut", v->threads);
	printf("\", \"backend\": \"%s\"}\n",
	       v->limit ? limit_name(v->limit) :
			  bmm_backend_serving(v->op, v->len)->name);
}

static int run_scenario(struct bench *b, struct variant *variants, size_t nr)
{
	size_t *order = calloc(nr, sizeof(*order)), i;
	unsigned int round;

	if (!order)
		return -1;
	forget(b);
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

static int run_all(struct bench *b)
{
	struct variant *v = b->variants.at, *end = v + b->variants.nr, *next;
	int wrong = 0;

	for (; v < end; v = next) {
		for (next = v; next < end && next->scenario == v->scenario;)
			next++;
		wrong |= run_scenario(b, v, (size_t)(next - v));
	}
	return !!wrong;
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
	const struct bmm_backend *backend;

	for (size_t i = 0; (backend = bmm_backend_at(i)); i++)
		if (serves(backend, subject))
			puts(backend->name);
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
	fprintf(stderr, "bmm-bench: %s: not memmap, clear, copy or first-use\n",
		name);
	return NULL;
}

static int get_memory(struct bench *b)
{
	const struct subject *subject = b->subject;
	size_t bytes = (size_t)(b->options.size / subject->per_unit) *
		       subject->unit;
	size_t step = subject->by_extent ? options_largest(&b->options) : bytes;
	size_t cold = COLD * buffer_cache_bytes();

	if (bytes < cold)
		bytes = (cold + step - 1) / step * step;
	if (!buffer_get(&b->buffer, bytes, subject->sourced))
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
	b.cpu = threads_init(); /* before memory is touched */
	if (get_memory(&b))
		return 3;
	b.random = b.options.seed;
	b.subject->init(&b.variants, &b.options, &b.buffer);
	print_start(&b);
	return run_all(&b);
}
