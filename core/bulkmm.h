/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.h - initialise, clear and copy memory in ranges
 *
 * The public interface of libbulkmm: no errno and no set-up; apart from the
 * functions that start threads, no allocation and no system call. Any number of
 * threads may call any function concurrently.
 *
 * Pools. bmm_populate() makes a mapping resident as fast as the machine allows,
 * with as many threads as help; bmm_clear_parallel() zeroes what is resident.
 *
 * Ordering. Streaming operations (bmm_stamp(), bmm_fill(), all that are named
 * _streaming) write with non-temporal stores, which bypass the cache and are
 * weakly ordered. Until bmm_drain() has returned on the same thread, nothing
 * may read or partly rewrite the destination, and no pointer to it may be
 * published. The drain is the caller's, one for any number of calls: it takes
 * longer than a short call does.
 *
 * Backends. The store instructions are selected by measurement, for each
 * operation and by the length of calls: the first call of an operation, or
 * bmm_measure(), tries them on memory of the library's own, which takes up to
 * 5 ms; from then on, calls read no clock and write nothing shared. Every
 * backend writes the same bytes.
 */
#ifndef BULKMM_H
#define BULKMM_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/* Of this header; the library's own is bmm_version_number(). */
#define BMM_VERSION_MAJOR 0
#define BMM_VERSION_MINOR 1
#define BMM_VERSION_PATCH 1
#define BMM_VERSION_NUMBER                                     \
	(BMM_VERSION_MAJOR * 10000 + BMM_VERSION_MINOR * 100 + \
	 BMM_VERSION_PATCH)

#ifdef __cplusplus
#define BMM_NOEXCEPT noexcept
extern "C" {
#else
#define BMM_NOEXCEPT
#endif

/*
 * What compilers check. BMM_WRITES and BMM_READS number the parameters that are
 * a pointer and its bytes: NULL is wrong unless there are none.
 */
#if defined(__GNUC__) && !defined(__KERNEL__) && !defined(BMM_INTERNAL)
#define BMM_ATTR(...) BMM_NOEXCEPT __attribute__((__VA_ARGS__))
#else
#define BMM_ATTR(...) BMM_NOEXCEPT
#endif
#define BMM_MUST_CHECK	 __warn_unused_result__
#define BMM_NONNULL(...) __nonnull__(__VA_ARGS__)
#if __GNUC__ >= 10
#define BMM_WRITES(pointer, len) __access__(__write_only__, pointer, len)
#define BMM_READS(pointer, len)	 __access__(__read_only__, pointer, len)
#else
#define BMM_WRITES(pointer, len)
#define BMM_READS(pointer, len)
#endif

#define BMM_EINVAL     22 /* EINVAL: value outside its documented range */
#define BMM_EOPNOTSUPP 95 /* EOPNOTSUPP: this CPU cannot */

#define BMM_RECORD_MIN	 32U  /* bytes */
#define BMM_RECORD_MAX	 128U /* bytes */
#define BMM_RECORD_WORDS (BMM_RECORD_MAX / 8)

/**
 * struct bmm_image - what to stamp
 * @size:     bytes of one record, a multiple of 8 from BMM_RECORD_MIN to
 *            BMM_RECORD_MAX; 64 (struct page) is the hot case
 * @stepping: bit w is set when word w changes from record to record
 * @word:     the first record, as 64-bit words in memory order
 * @step:     added to each word from one record to the next, modulo 2^64; zero
 *            where the word does not step
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
 * enum bmm_op - operations; backends are selected for each separately
 * @BMM_STAMP:           bmm_stamp()
 * @BMM_COPY:            bmm_copy(), bmm_move(), bmm_fill_cached()
 * @BMM_COPY_STREAMING:  bmm_copy_streaming(), bmm_move_streaming(), bmm_fill()
 * @BMM_CLEAR:           bmm_clear()
 * @BMM_CLEAR_STREAMING: bmm_clear_streaming()
 * @BMM_OPS:             number of operations
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
		   const void *next, size_t size)
	BMM_ATTR(BMM_MUST_CHECK, BMM_NONNULL(1, 2));
void bmm_image_at(struct bmm_image *out, const struct bmm_image *image,
		  uint64_t n) BMM_ATTR(BMM_NONNULL(1, 2));

int bmm_stamp(void *dst, const struct bmm_image *image, size_t count)
	BMM_ATTR(BMM_MUST_CHECK, BMM_NONNULL(2));

int bmm_fill(void *dst, const void *pattern, size_t size, size_t len)
	BMM_ATTR(BMM_MUST_CHECK, BMM_WRITES(1, 4), BMM_READS(2, 3));
int bmm_fill_cached(void *dst, const void *pattern, size_t size, size_t len)
	BMM_ATTR(BMM_MUST_CHECK, BMM_WRITES(1, 4), BMM_READS(2, 3));

void bmm_copy(void *dst, const void *src, size_t len)
	BMM_ATTR(BMM_WRITES(1, 3), BMM_READS(2, 3));
void bmm_copy_streaming(void *dst, const void *src, size_t len)
	BMM_ATTR(BMM_WRITES(1, 3), BMM_READS(2, 3));

void bmm_move(void *dst, const void *src, size_t len)
	BMM_ATTR(BMM_WRITES(1, 3), BMM_READS(2, 3));
void bmm_move_streaming(void *dst, const void *src, size_t len)
	BMM_ATTR(BMM_WRITES(1, 3), BMM_READS(2, 3));

void bmm_drain(void) BMM_ATTR();

void bmm_clear(void *dst, size_t len) BMM_ATTR(BMM_WRITES(1, 2));
void bmm_clear_streaming(void *dst, size_t len) BMM_ATTR(BMM_WRITES(1, 2));

void bmm_measure(void) BMM_ATTR();

int bmm_backend_select(enum bmm_op op, const char *name, size_t len)
	BMM_ATTR(BMM_READS(2, 3));
size_t bmm_backend_selection(enum bmm_op op, char *buf, size_t size)
	BMM_ATTR(BMM_WRITES(2, 3));
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size)
	BMM_ATTR(BMM_WRITES(3, 4));

size_t bmm_environment_error(char *buf, size_t size) BMM_ATTR(BMM_WRITES(1, 2));

const char *bmm_version(void) BMM_ATTR();
int bmm_version_number(void) BMM_ATTR();

#ifndef __KERNEL__

int bmm_persist(const void *addr, size_t len) BMM_ATTR(BMM_MUST_CHECK);

#include "bulkmm-populate.h"

/* The library itself does without. */
#ifndef BMM_INTERNAL
#include "bulkmm-sanitize.h"
#endif

#endif

#ifdef __cplusplus
}
#endif

#endif
