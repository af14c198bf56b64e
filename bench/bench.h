/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench.h - what the parts of the bench program share
 *
 * A subject is what is measured: "memmap" writes the struct pages of a device
 * of --size bytes, "clear" zeroes up to --size bytes extent by extent. All of
 * it lies in one buffer. Each variant is one way to write it; main.c times them
 * in random order.
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

#define EXTENTS_MAX 8
#define EXTENT_MIN  4096ULL

struct options {
	const char *subject;
	uint64_t size; /* of the device, or of what is cleared, in bytes */
	uint64_t extents[EXTENTS_MAX]; /* to clear at a time; powers of two */
	size_t extents_nr;
	unsigned int rounds;
	uint64_t seed;
	const char *backend; /* what "bulkmm" uses; NULL for the default */
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
 * struct variant - one way to write the buffer
 * @scenario: as in the results; variants of one scenario compare
 * @name:     as in the results
 * @run:      writes @count units of the subject from @base on, and drains
 * @backend:  of the core, for those variants that have one, else NULL
 * @word:     writes one constant word all over, no struct pages
 * @clear:    zeroes one extent; of the subject "clear", as all that follows
 * @extent:   bytes to clear at a time
 * @use:      what is done with each extent at once
 */
struct variant {
	const char *scenario;
	const char *name;
	void (*run)(const struct variant *self, void *base, size_t count);
	const struct bmm_backend *backend;
	bool word;
	void (*clear)(void *dst, size_t len);
	size_t extent;
	enum use use;
};

#define VARIANTS_MAX (EXTENTS_MAX * USES * 5)

/**
 * struct subject - what is measured
 * @name:     as on the command line
 * @per_unit: bytes of --size to a unit
 * @unit:     bytes of memory to a unit
 * @init:     fills the table of variants, returns how many there are
 * @describe: prints what else the start line says, as JSON members
 * @verify:   runs a variant over poisoned memory; whether all of it is right
 * @bytes:    what a variant writes of a buffer of @count units
 */
struct subject {
	const char *name;
	size_t per_unit;
	size_t unit;
	size_t (*init)(struct variant *variants, const struct options *options);
	void (*describe)(size_t count);
	bool (*verify)(const struct variant *variant, void *base, size_t count);
	size_t (*bytes)(const struct variant *variant, size_t count);
};

extern const struct subject memmap_subject, clear_subject;

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

/* buffer.c */
void *buffer_get(size_t bytes);
uint64_t buffer_huge_bytes(void);

/* verify.c */
bool verify(const struct variant *variant, void *base, size_t count);

/* order.c */
void order_shuffle(size_t *order, size_t n, uint64_t *state);

/* options.c */
int options_parse(struct options *options, int argc, char **argv);

#endif
