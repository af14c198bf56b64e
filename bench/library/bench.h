/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench.h - what the parts of the bench program share
 *
 * A subject is what is measured: "clear" zeroes and "copy" copies memory,
 * extent by extent; "first-use" measures what calibration costs the first call.
 * A scenario is one job of a subject, like a program that does nothing else;
 * each of its variants is one way to do that job.
 */
#ifndef BENCH_H
#define BENCH_H

#include "common.h"

#define EXTENTS_MAX 16
#define EXTENT_MIN  4096ULL

/*
 * Bytes of one sample of "clear" and "copy", unless the extent is larger: long
 * enough for the clock, short enough for many scenarios.
 */
#define SAMPLE ((size_t)64 << 20)

/* More than this fits no common cache. */
#define HOT_MAX ((size_t)16 << 20)

/*
 * Misaligned: offsets of destination and source within their extents, and how
 * much shorter than the extent both are.
 */
#define SHIFT_TO   24U
#define SHIFT_FROM 15U
#define SHIFT_CUT  35U

struct options {
	const char *subject;
	uint64_t size; /* of what is written */
	/* to work on at a time: powers of two that divide @size */
	uint64_t extents[EXTENTS_MAX];
	size_t extents_nr;
	uint64_t rounds;
	uint64_t seed;
	const char *backend; /* what "bulkmm" uses; NULL: the fastest */
	bool unverified;     /* another process has verified the output */
	bool list;
};

/* Writes one extent and drains. Only copies use @src. */
typedef void method_fn(void *dst, const void *src, size_t len);

/**
 * struct variant - one way to do the job of a scenario
 * @scenario: as in the results; variants of one scenario compare
 * @name:     as in the results
 * @op:       the operation, whoever does it
 * @method:   of a peer
 * @limit:    kind of stores, of a limit
 * @backend:  of the core, if the variant names one; else the selected one
 * @fresh:    before each sample the core forgets what it has measured
 * @threads:  that share each sample
 * @bytes:    that one sample walks through
 * @times:    how often a sample writes the same memory; above 1 it is meant to
 *            be cached, else each sample takes the next part of the buffer
 * @extent:   bytes to work on at a time
 * @len:      bytes of one call of the core
 * @source:   distance in bytes from a copy's destination to its source
 * @shifted:  destination and source are misaligned within their extents
 * @use:      how each extent is used right after
 */
struct variant {
	const char *scenario;
	const char *name;
	enum bmm_op op;
	method_fn *method;
	const struct limit *limit;
	const struct bmm_backend *backend;
	bool fresh;
	unsigned int threads;
	size_t bytes;
	size_t times;
	size_t extent;
	size_t len;
	size_t source;
	bool shifted;
	enum use use;
};

/* Does a job by the public function. */
static inline void job_call(const struct bmm_job *job)
{
	switch (job->op) {
	case BMM_STAMP:
		bmm_stamp(job->dst, job->image, job->len / job->image->size);
		break;
	case BMM_COPY:
		bmm_copy(job->dst, job->src, job->len);
		break;
	case BMM_COPY_STREAMING:
		bmm_copy_streaming(job->dst, job->src, job->len);
		break;
	case BMM_CLEAR:
		bmm_clear(job->dst, job->len);
		break;
	default:
		bmm_clear_streaming(job->dst, job->len);
		break;
	}
}

/* A growing list of variants; those of one scenario are adjacent. */
struct variants {
	struct variant *at;
	size_t nr;
};

/**
 * struct buffer - the memory that is worked on
 * @base:   what is written, with GUARD bytes before and after it
 * @bytes:  its size
 * @source: distance to a second area of @bytes; 0 without one
 */
struct buffer {
	char *base;
	size_t bytes;
	size_t source;
};

struct bench;

/**
 * struct extents - what a subject does extent by extent
 * @cached:    an operation of the core
 * @streaming: the same bypassing the cache
 * @peers:     others' ways, the last but one libpmem2's, the last one a loop
 *             over whole words
 * @peers_nr:  how many there are
 * @hot:       ways that are measured in memory that a cache can hold only
 * @hot_nr:    how many there are
 * @more:      lists further scenarios of an extent
 */
struct extents {
	enum bmm_op cached, streaming;
	struct variant *peers;
	size_t peers_nr;
	const struct variant *hot;
	size_t hot_nr;
	void (*more)(struct bench *b, struct variant *job);
};

/**
 * struct subject - what is measured
 * @name:      as on the command line
 * @sourced:   needs a source to read, too
 * @ops:       operations of the core that it uses, a bit each
 * @extents:   if it uses extents_init()
 * @init:      lists the variants, scenario by scenario
 * @describe:  prints further JSON members of the start line
 */
struct subject {
	const char *name;
	bool sourced;
	unsigned int ops;
	const struct extents *extents;
	void (*init)(struct bench *b);
	void (*describe)(const struct bench *b);
};

/**
 * struct bench - a run
 * @cursor:   offset of the next cold sample
 * @random:   state of the order of the rounds
 * @cpu:      that it runs on
 */
struct bench {
	struct options options;
	const struct subject *subject;
	struct buffer buffer;
	struct variants variants;
	size_t cursor;
	uint64_t random;
	unsigned int cpu;
};

extern const struct subject clear_subject, copy_subject, first_use_subject;

/* run.c */
unsigned int run_select(const struct subject *subject, const char *name);
int run_all(struct bench *b);

/* variants.c */
void *require_memory(void *memory);
void variants_add(struct variants *list, const struct variant *job,
		  const char *name);
void variants_add_peers(struct variants *list, const struct variant *job,
			const struct variant *peers, size_t nr);
void variants_add_ours(struct variants *list, const struct variant *job,
		       enum bmm_op op, const char *name);
void variants_add_limits(struct variants *list, const struct variant *job);
void variants_add_threads(struct variants *list, const struct variant *job,
			  enum bmm_op op, const char *name);
char *extent_name(const char *subject, uint64_t extent, const char *suffix);
void extents_scenario(struct bench *b, struct variant *job, const char *suffix);
void extents_add(struct bench *b, struct variant job, const char *suffix);
void extents_init(struct bench *b);
void extents_describe(const struct bench *b);

/* walk.c */
void walk_range(const struct variant *v, char *base, size_t bytes);
void walk(const struct variant *v, char *base);

/* threads.c */
unsigned int threads_init(void);
unsigned int threads_nr(void);
size_t threads_share(const struct variant *v);
void threads_gather(unsigned int nr);
void threads_run(const struct variant *v, char *base);

/* peers.c */
method_fn plain_clear, plain_copy;
#ifdef BENCH_LIBPMEM2
method_fn pmem_clear, pmem_copy;
bool pmem_init(const struct buffer *buffer);
#else
#define pmem_clear	  NULL
#define pmem_copy	  NULL
#define pmem_init(buffer) false
#endif

/* buffer.c */
int buffer_get(struct buffer *buffer, size_t bytes, bool sourced);
void buffer_fill_source(const struct buffer *buffer);
bool buffer_source_right(const struct buffer *buffer, size_t bytes);

/* verify.c */
bool verify(const struct variant *v, const struct buffer *buffer);

/* options.c */
bool options_parse(struct options *options, int argc, char **argv);
const char *options_backend(const struct options *options, enum bmm_op op);
size_t options_largest(const struct options *options);

#endif
