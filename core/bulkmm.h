/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.h - initialise, clear and copy memory in ranges
 *
 * The public interface of libbulkmm. Freestanding: no allocation, no errno, no
 * set-up. Every function may be called by any number of threads at once.
 *
 * Ordering. Streaming operations write with non-temporal stores, which bypass
 * the cache and are weakly ordered. Until bmm_drain() has returned on the same
 * thread, nothing may read or partly rewrite the destination and nothing that
 * points to it may be published.
 *
 * Backends. Which store instructions do the work is picked by measurement, per
 * operation and size: the first calls of 4 KiB and more are timed, the fastest
 * backend is kept, and after that no clock is read and nothing shared is
 * written. What a call writes is the same whichever backend serves it.
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
 * enum bmm_op - operations; each has backends of its own
 * @BMM_STAMP:           bmm_stamp() and bmm_fill()
 * @BMM_COPY:            bmm_copy()
 * @BMM_COPY_STREAMING:  bmm_copy_streaming()
 * @BMM_CLEAR:           bmm_clear()
 * @BMM_CLEAR_STREAMING: bmm_clear_streaming()
 * @BMM_OPS:             how many there are
 */
enum bmm_op {
	BMM_STAMP,
	BMM_COPY,
	BMM_COPY_STREAMING,
	BMM_CLEAR,
	BMM_CLEAR_STREAMING,
	BMM_OPS
};

/* Functions without a blank line between them share a man page. */
int bmm_image_init(struct bmm_image *image, const void *record,
		   const void *next, size_t size);
void bmm_image_at(struct bmm_image *out, const struct bmm_image *image,
		  uint64_t n);

int bmm_stamp(void *dst, const struct bmm_image *image, size_t count);

int bmm_fill(void *dst, const void *pattern, size_t size, size_t len);

void bmm_copy(void *dst, const void *src, size_t len);
void bmm_copy_streaming(void *dst, const void *src, size_t len);

void bmm_drain(void);

void bmm_clear(void *dst, size_t len);
void bmm_clear_streaming(void *dst, size_t len);

int bmm_backend_select(enum bmm_op op, const char *name, size_t len);
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size);
size_t bmm_environment_error(char *buf, size_t size);

const char *bmm_version(void);

#ifdef __cplusplus
}
#endif

#endif
