// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The list of variants, and the rows that several subjects share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Ends the process if there is no memory. */
void *require_memory(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "bmm-bench: not enough memory\n");
	exit(3);
}

/* Names and lists live as long as the process. */
static char *join_names(const char *a, const char *b, const char *c)
{
	char *name = NULL;

	if (asprintf(&name, "%s%s%s", a, b, c) < 0)
		name = NULL;
	return require_memory(name);
}

/* Appends a variant. Its name must stay allocated. */
void variants_add(struct variants *list, const struct variant *job,
		  const char *name)
{
	list->at = require_memory(
		realloc(list->at, (list->nr + 1) * sizeof(*list->at)));
	list->at[list->nr] = *job;
	list->at[list->nr++].name = name;
}

/* Appends the peers of a scenario; one without a method is omitted. */
void variants_add_peers(struct variants *list, const struct variant *job,
			const struct variant *peers, size_t nr)
{
	struct variant peer = *job;

	for (; nr; nr--, peers++) {
		peer.method = peers->method;
		if (peer.method)
			variants_add(list, &peer, peers->name);
	}
}

/*
 * Appends an operation of the core as programs call it, and each backend of it,
 * whose name is appended to the variant's. Generic C cannot bypass the cache,
 * so streaming operations do not list it.
 */
void variants_add_ours(struct variants *list, const struct variant *job,
		       enum bmm_op op, const char *name)
{
	const struct bmm_backend *backend;
	struct variant variant = *job;
	size_t i;

	variant.op = op;
	variants_add(list, &variant, name);
	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		variant.backend = backend;
		if (backend == &bmm_generic && bmm_op_streams(op))
			continue;
		if (bmm_backend_can(backend, op))
			variants_add(list, &variant,
				     join_names(name, ":", backend->name));
	}
}

/* Appends each kind of stores. */
void variants_add_limits(struct variants *list, const struct variant *job)
{
	struct variant limit = *job;
	size_t i;

	for (i = 0; (limit.limit = limit_at(job->op, i)); i++)
		variants_add(list, &limit,
			     join_names("limit:", limit_name(limit.limit), ""));
}

static unsigned int next_threads(unsigned int n)
{
	unsigned int nr = threads_nr();

	return n < nr && 2 * n > nr ? nr : 2 * n;
}

/*
 * Appends the limit, and the core, by 2, 4, 8 ... threads, and by one per CPU.
 * Which kind of stores is the limit is found before it is timed.
 */
void variants_add_threads(struct variants *list, const struct variant *job,
			  enum bmm_op op, const char *name)
{
	struct variant variant = *job;
	char suffix[16];
	unsigned int n;

	variant.op = op;
	for (n = 2; n <= threads_nr() && job->bytes / n >= EXTENT_MIN;
	     n = next_threads(n)) {
		variant.threads = n;
		variant.limit = NULL;
		if (threads_share(&variant) < variant.len)
			variant.len = threads_share(&variant);
		snprintf(suffix, sizeof(suffix), "-%ut", n);
		variants_add(list, &variant, join_names(name, suffix, ""));
		variant.limit = limit_at(op, 0);
		variants_add(list, &variant, join_names("limit", suffix, ""));
	}
}

/*
 * The name of a scenario, such as "clear-2m-then-read"; never freed. The extent
 * is a power of two.
 */
char *extent_name(const char *subject, uint64_t extent, const char *suffix)
{
	unsigned int power = (unsigned int)__builtin_ctzll(extent) / 10;
	char size[32];

	snprintf(size, sizeof(size), "-%llu%c",
		 (unsigned long long)(extent >> (10 * power)), "bkmgt"[power]);
	return join_names(subject, size, suffix);
}

/* Bytes that one sample walks through: a multiple of the extent. */
static size_t extent_sample(size_t extent, const struct options *options)
{
	size_t bytes = extent > SAMPLE ? extent : SAMPLE;

	return bytes < options->size ? bytes : (size_t)options->size;
}

/*
 * How often one extent is written in a sample of hot memory, which is fast: a
 * sample needs more of it.
 */
static size_t extent_times(size_t extent)
{
	size_t times = 2 * SAMPLE / extent;

	return times > 16 ? times : 16;
}

/* Appends a scenario. The limits, and the last peer, need alignment. */
void extents_scenario(struct bench *b, struct variant *job, const char *suffix)
{
	const struct extents *e = b->subject->extents;
	struct variants *list = &b->variants;

	job->scenario = extent_name(b->subject->name, job->extent, suffix);
	variants_add_peers(list, job, e->peers, e->peers_nr - job->shifted);
	variants_add_ours(list, job, e->cached, "bulkmm-cached");
	variants_add_ours(list, job, e->streaming, "bulkmm-streaming");
	if (job->use == USE_NONE && !job->shifted)
		variants_add_limits(list, job);
}

/* Appends a job; by threads; and repeated ("again") if a cache can hold it. */
void extents_add(struct bench *b, struct variant job, const char *suffix)
{
	const struct extents *e = b->subject->extents;
	struct variants *list = &b->variants;

	extents_scenario(b, &job, suffix);
	if (!job.shifted && job.extent == options_largest(&b->options))
		variants_add_threads(list, &job, e->streaming,
				     "bulkmm-streaming");
	if (job.extent > HOT_MAX)
		return;
	job.bytes = job.extent;
	job.times = extent_times(job.extent);
	extents_scenario(b, &job, join_names(suffix, "-again", ""));
	variants_add_peers(list, &job, e->hot, e->hot_nr);
	if (!job.shifted)
		return;
	job.shifted = false; /* what misalignment costs */
	job.len = job.extent;
	variants_add(list, &job, "bulkmm-cached-aligned");
}

void extents_init(struct bench *b)
{
	const struct extents *e = b->subject->extents;
	struct variant job;
	size_t i;

	if (!pmem_init(&b->buffer))
		e->peers[e->peers_nr - 2].method = NULL;
	for (i = 0; i < b->options.extents_nr; i++) {
		job = (struct variant){ .op = e->cached,
					.times = 1,
					.source = b->buffer.source };
		job.extent = (size_t)b->options.extents[i];
		job.len = job.extent;
		job.bytes = extent_sample(job.extent, &b->options);
		extents_add(b, job, "");
		e->more(b, &job);
	}
}

void extents_describe(const struct bench *b)
{
	const struct extents *e = b->subject->extents;

	printf("\"cached\": \"%s\", \"streaming\": \"%s\", \"libpmem2\": %s",
	       options_backend(&b->options, e->cached),
	       options_backend(&b->options, e->streaming),
	       e->peers[e->peers_nr - 2].method ? "true" : "false");
}
