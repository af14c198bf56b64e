/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench.h - what the parts of the bench program share
 *
 * One buffer stands for the struct pages of a device of --size bytes. Each
 * variant is one way to write all of it; main.c times them in random order.
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

struct options {
	uint64_t size; /* of the device, in bytes */
	unsigned int rounds;
	uint64_t seed;
	const char *backend; /* what "bulkmm" uses; NULL for the default */
	bool list;
};

/**
 * struct variant - one way to write the struct pages of a device
 * @name:    as in the results
 * @run:     writes @count records from @base on, and drains
 * @backend: of the core, for those variants that have one, else NULL
 * @word:    writes one constant word all over, no struct pages
 */
struct variant {
	const char *name;
	void (*run)(const struct variant *self, void *base, size_t count);
	const struct bmm_backend *backend;
	bool word;
};

#define VARIANTS_MAX 16

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

/* variants.c */
size_t variants_init(struct variant *variants);

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
