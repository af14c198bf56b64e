// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-bench - time the ways to write bulk memory
 *
 * Writes JSON lines: one that describes the run, one per sample, one for each
 * selected backend or kind of stores, one per verified variant. Exit code 0, 1
 * (a variant wrote something wrong), 2 (usage), 3 (no memory).
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Times the last-level cache: memory that is walked through is always cold. */
#define COLD 4U

static const struct subject *const subjects[] = {
	&clear_subject,
	&copy_subject,
	&first_use_subject,
};

#define SUBJECTS_NR (sizeof(subjects) / sizeof(subjects[0]))

static void print_start(const struct bench *b)
{
	size_t bytes = b->buffer.bytes;

	printf("{\"event\": \"start\", \"size\": %llu, \"bytes\": %zu, "
	       "\"llc\": %zu, \"cpus\": %u, \"cpu\": %u, \"rounds\": %llu, "
	       "\"seed\": %llu, \"huge_bytes\": %llu, ",
	       (unsigned long long)b->options.size,
	       b->subject->sourced ? 2 * bytes : bytes, buffer_cache_bytes(),
	       threads_nr(), b->cpu, (unsigned long long)b->options.rounds,
	       (unsigned long long)b->options.seed,
	       (unsigned long long)buffer_huge_bytes());
	b->subject->describe(b);
	puts("}");
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

static bool check(const struct subject *subject, const struct options *options)
{
	const char *backend = options->backend;

	if (backend && !(*backend && run_select(subject, backend)))
		return false;
	return options->extents_nr;
}

static const struct subject *find_subject(const char *name)
{
	for (size_t i = 0; i < SUBJECTS_NR; i++)
		if (!strcmp(name, subjects[i]->name))
			return subjects[i];
	return NULL;
}

static int get_memory(struct bench *b)
{
	const struct subject *subject = b->subject;
	size_t bytes = (size_t)b->options.size;
	size_t cold = COLD * buffer_cache_bytes();
	size_t step = options_largest(&b->options);

	if (bytes < cold)
		bytes = (cold + step - 1) / step * step;
	if (!buffer_get(&b->buffer, bytes, subject->sourced))
		return 0;
	fprintf(stderr, "bmm-bench: not enough memory\n");
	return -1;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bmm-bench clear|copy|first-use --size=BYTES\n"
		"\t--extent=BYTES... [--rounds=N] [--seed=N] [--backend=NAME]\n"
		"\t[--unverified] [--list]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (options_parse(&b.options, argc, argv))
		b.subject = find_subject(b.options.subject);
	if (!b.subject)
		return usage();
	if (b.options.list)
		return list_backends(b.subject);
	if (!check(b.subject, &b.options))
		return usage();
	b.cpu = threads_init(); /* before memory is touched */
	if (get_memory(&b))
		return 3;
	b.random = b.options.seed;
	b.subject->init(&b);
	print_start(&b);
	return run_all(&b);
}
