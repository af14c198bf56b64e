/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench.h - what the parts of the bench program share
 *
 * A subject is what is measured: "memmap" writes the struct pages of a device
 * of --size bytes; "clear" zeroes, and "copy" copies, extent by extent within
 * --size bytes. A scenario is one job of a subject, and stands for a program
 * that does nothing else; each of its variants is one way to do that job.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bmm.h"

#define DEVICE_PAGE  4096ULL
#define SECTION_SIZE (128ULL << 20)
/* Struct pages of one section: how far the kernel goes without a breath. */
#define SECTION_PAGES ((size_t)(SECTION_SIZE / DEVICE_PAGE))
#define HUGE_SIZE     ((size_t)2 << 20)

#define EXTENTS_MAX 16
#define EXTENT_MIN  4096ULL

/*
 * What one sample of "clear" and "copy" goes through, unless the extent is
 * larger: long enough for the clock, short enough for many scenarios.
 */
#define SAMPLE ((size_t)64 << 20)

/* Bytes on each side of what is written that have to stay as they are. */
#define GUARD  ((size_t)4096)
#define POISON 0xff

struct options {
	const char *subject;
	uint64_t size; /* of the device, or of what is cleared or copied */
	uint64_t extents[EXTENTS_MAX]; /* to work on at a time; powers of two */
	size_t extents_nr;
	uint64_t used_max; /* extents above are cleared and left alone */
	unsigned int rounds;
	uint64_t seed;
	const char *backend; /* what "bulkmm" uses; NULL: the core decides */
	bool list;
};

/* How an extent is used as soon as it is cleared. */
enum use {
	USE_NONE,
	USE_READ,   /* one word per line, in order */
	USE_WRITE,  /* all bytes, in order */
	USE_RANDOM, /* one word per line is read, in random order */
	USES
};

/**
 * struct variant - one way to do the job of a scenario
 * @scenario: as in the results; variants of one scenario compare
 * @name:     as in the results
 * @run:      writes @count units of the subject from @base on, and drains
 * @units:    of the subject in one sample
 * @times:    how often a sample writes the same units; above 1 they are to be
 *            in the cache, else each sample takes the next ones of the buffer
 * @chooses:  leaves it to the core which backend to use
 * @backend:  of the core, for those variants that name one, else NULL
 * @word:     writes one constant word all over, no struct pages
 * @clear:    zeroes one extent; of the subject "clear"
 * @copy:     copies one extent; of the subject "copy"
 * @source:   what @copy reads lies so many bytes beyond what it writes
 * @extent:   bytes to write at a time
 * @use:      what is done with each extent at once
 */
struct variant {
	const char *scenario;
	const char *name;
	void (*run)(const struct variant *self, void *base, size_t count);
	size_t units;
	size_t times;
	bool chooses;
	const struct bmm_backend *backend;
	bool word;
	void (*clear)(void *dst, size_t len);
	void (*copy)(void *dst, const void *src, size_t len);
	size_t source;
	size_t extent;
	enum use use;
};

#define VARIANTS_MAX (EXTENTS_MAX * USES * 8)

/**
 * struct buffer - the memory that is worked on
 * @base:   what is written; GUARD bytes before and behind it are there too
 * @bytes:  how much of it
 * @source: a second area of @bytes, so many bytes beyond; 0 without one
 */
struct buffer {
	char *base;
	size_t bytes;
	size_t source;
};

/**
 * struct subject - what is measured
 * @name:     as on the command line
 * @per_unit: bytes of --size to a unit
 * @unit:     bytes of memory to a unit
 * @by_extent: works on the extents of the command line
 * @sourced:  needs a source beside what it writes
 * @ops:      of the core that it uses, a bit each
 * @init:     fills the table of variants, scenario by scenario, and returns
 *            how many there are
 * @describe: prints what else the start line says, as JSON members
 * @right:    whether @count units from @base on are what a variant has to
 *            leave there
 */
struct subject {
	const char *name;
	size_t per_unit;
	size_t unit;
	bool by_extent;
	bool sourced;
	unsigned int ops;
	size_t (*init)(struct variant *variants, const struct options *options,
		       const struct buffer *buffer);
	void (*describe)(const struct options *options, size_t count);
	bool (*right)(const struct variant *variant, const void *base,
		      size_t count);
};

extern const struct subject memmap_subject, clear_subject, copy_subject;

/* rebuild.c */
void rebuild_run(const struct variant *self, void *base, size_t count);
void rebuild_saferet_run(const struct variant *self, void *base, size_t count);
void rebuild_page(void *page, uint64_t pfn);

/* template.c */
void template_copy_run(const struct variant *self, void *base, size_t count);
void template_movnti_run(const struct variant *self, void *base, size_t count);
void template_still_run(const struct variant *self, void *base, size_t count);

/* stamp.c */
void stamp_run(const struct variant *self, void *base, size_t count);

/* limit.c */
#define LIMIT_WORD 0x5a0f1e2d3c4b6978ULL
void limit_run(const struct variant *self, void *base, size_t count);

/* use.c */
void use_extent(enum use use, void *base, size_t len);

/* extent.c */
void extent_name(char *name, size_t room, const char *subject, uint64_t extent,
		 const char *suffix);
size_t extent_sample(size_t extent, const struct buffer *buffer);

/* peers.c */
void plain_clear(void *dst, size_t len);
void plain_copy(void *dst, const void *src, size_t len);

/* pmem.c */
bool pmem_init(const struct buffer *buffer);
void pmem_clear(void *dst, size_t len);
void pmem_copy(void *dst, const void *src, size_t len);

/* buffer.c */
int buffer_get(struct buffer *buffer, size_t bytes, bool sourced);
uint64_t buffer_huge_bytes(void);

/* pages.c */
bool pages_right(const struct variant *variant, const void *base, size_t count);

/* verify.c */
bool verify(const struct subject *subject, const struct variant *variant,
	    const struct buffer *buffer);

/* order.c */
void order_shuffle(size_t *order, size_t n, uint64_t *state);

/* options.c */
int options_parse(struct options *options, int argc, char **argv);
const char *options_backend(const struct options *options, enum bmm_op op);

#endif
