/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.h - bulk memory management: primitives for whole ranges
 *
 * The public interface of libbulkmm, and of the same code in the kernel
 * module. Freestanding: no allocation, no errno, general registers only, no
 * set-up. Every function may be called by any number of threads at once.
 *
 * Ordering. Streaming operations may use non-temporal stores, which are weakly
 * ordered and do not stay in the cache. Until bmm_drain() has returned on the
 * same CPU, nothing may read or partly rewrite the destination and nothing
 * that points to it may be published. Callers drain whichever backend is in
 * force.
 *
 * Choice. Which stores do the work is measured on the job, per operation, size
 * and memory node: a call of 256 KiB and more may be done in parts by several
 * backends in turn, and what it writes is the same whoever writes it.
 */
#ifndef BULKMM_H
#define BULKMM_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define BMM_EINVAL 22 /* EINVAL: a value out of its documented range */

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

/**
 * enum bmm_op - what a backend is chosen for, each on its own
 * @BMM_STAMP:           bmm_stamp()
 * @BMM_COPY:            bmm_copy_streaming()
 * @BMM_CLEAR:           bmm_clear()
 * @BMM_CLEAR_STREAMING: bmm_clear_streaming()
 * @BMM_OPS:             how many there are
 */
enum bmm_op {
	BMM_STAMP,
	BMM_COPY,
	BMM_CLEAR,
	BMM_CLEAR_STREAMING,
	BMM_OPS
};

/* Numbers, or pointers that are read as such, of any type. */
typedef unsigned long __attribute__((__may_alias__)) bmm_address;

/* Functions that stand together share a man page. */
int bmm_image_init(struct bmm_image *image, const void *record,
		   const void *next, size_t size);
void bmm_image_at(struct bmm_image *out, const struct bmm_image *image,
		  uint64_t n);

int bmm_stamp(void *dst, const struct bmm_image *image, size_t count);

void bmm_copy_streaming(void *dst, const void *src, size_t len);

void bmm_drain(void);

void bmm_clear(void *dst, size_t len);
void bmm_clear_streaming(void *dst, size_t len);

size_t bmm_run_length(const bmm_address *pfns, size_t n);
size_t bmm_run_length_step(const bmm_address *item, size_t n,
			   unsigned long step);
size_t bmm_run_length_get(unsigned long (*get)(const void *ctx, size_t i),
			  const void *ctx, size_t n);

unsigned int bmm_block_order(unsigned long vpn, unsigned long pfn,
			     unsigned long pages, unsigned long orders);

int bmm_backend_select(enum bmm_op op, const char *name, size_t len);
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
