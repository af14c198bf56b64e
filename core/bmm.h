/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bmm.h - primitives for bulk memory management
 *
 * Freestanding: no libc, no allocation, no errno, general registers only, so
 * that the same object code can run in the kernel without an FPU section.
 *
 * Ordering. Streaming operations may use non-temporal stores, which are weakly
 * ordered and do not stay in the cache. Until bmm_drain() has returned on the
 * same CPU, nothing may read or partly rewrite the destination and nothing
 * that points to it may be published. Callers drain whichever backend is in
 * force.
 */
#ifndef BMM_H
#define BMM_H

#include "bmm_host.h"

#define BMM_RECORD_MIN	 32U  /* bytes */
#define BMM_RECORD_MAX	 128U /* bytes */
#define BMM_RECORD_WORDS (BMM_RECORD_MAX / 8)

/**
 * struct bmm_image - what to stamp
 * @size:     bytes of one record, a multiple of 8 from BMM_RECORD_MIN to
 *            BMM_RECORD_MAX; 64 (struct page) is the hot case
 * @stepping: bit w is set when word w changes from record to record
 * @word:     the first record, as 64-bit words in memory order
 * @step:     what is added to each word from one record to the next, modulo
 *            2^64; zero where the word does not step
 *
 * Made by bmm_image_init(); record n holds word + n * step.
 */
struct bmm_image {
	uint32_t size;
	uint32_t stepping;
	uint64_t word[BMM_RECORD_WORDS];
	uint64_t step[BMM_RECORD_WORDS];
};

/* What is chosen a backend for, each on its own. */
enum bmm_op {
	BMM_STAMP,
	BMM_COPY,
	BMM_CLEAR,
	BMM_CLEAR_STREAMING,
	BMM_OPS
};

#define BMM_CACHED 1U /* backend leaves what it writes in the cache */

/**
 * struct bmm_backend - one way to issue the stores
 * @name:            what a user types to force it
 * @flags:           BMM_CACHED or 0
 * @supported:       whether this CPU has it; may be slow (CPUID)
 * @stamp:           as bmm_stamp(), arguments already checked
 * @copy:            as bmm_copy_streaming()
 * @clear:           as bmm_clear()
 * @clear_streaming: as bmm_clear_streaming(), but for the drain
 * @drain:           makes the stores of this backend visible; empty where
 *                   they are ordinary
 *
 * An operation that a backend does not have is NULL.
 */
struct bmm_backend {
	const char *name;
	unsigned int flags;
	bool (*supported)(void);
	void (*stamp)(void *dst, const struct bmm_image *image, size_t count);
	void (*copy)(void *dst, const void *src, size_t len);
	void (*clear)(void *dst, size_t len);
	void (*clear_streaming)(void *dst, size_t len);
	void (*drain)(void);
};

/* Every backend built for this architecture, slowest to fastest guess. */
extern const struct bmm_backend *const bmm_backends[];
extern const size_t bmm_backends_nr;

bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op);
const struct bmm_backend *bmm_backend_find(enum bmm_op op, const char *name,
					   size_t len);
const struct bmm_backend *bmm_backend_default(enum bmm_op op);
const struct bmm_backend *bmm_backend(enum bmm_op op);
int bmm_backend_select(enum bmm_op op, const char *name, size_t len);

int bmm_image_init(struct bmm_image *image, const void *record,
		   const void *next, size_t size);
void bmm_image_at(struct bmm_image *out, const struct bmm_image *image,
		  uint64_t n);

int bmm_stamp(void *dst, const struct bmm_image *image, size_t count);
void bmm_copy_streaming(void *dst, const void *src, size_t len);
void bmm_drain(void);

void bmm_clear(void *dst, size_t len);
void bmm_clear_streaming(void *dst, size_t len);

size_t bmm_run_length_step(const bmm_address *item, size_t n,
			   unsigned long step);
size_t bmm_run_length_get(unsigned long (*get)(const void *ctx, size_t i),
			  const void *ctx, size_t n);
unsigned int bmm_block_order(unsigned long vpn, unsigned long pfn,
			     unsigned long pages, unsigned long orders);

/**
 * bmm_run_length() - length of the physically contiguous run that starts an
 *                    array
 * @pfns: page frame numbers
 * @n:    how many
 *
 * Return: as bmm_run_length_step().
 */
static inline size_t bmm_run_length(const bmm_address *pfns, size_t n)
{
	return bmm_run_length_step(pfns, n, 1);
}

#endif
