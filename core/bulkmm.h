/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm.h - initialise, clear and copy memory in ranges
 *
 * The public interface of libbulkmm: no errno and no set-up; apart from the
 * functions that start threads, no allocation, and no system call once a
 * backend is picked. Any number of threads may call any function concurrently.
 *
 * Pools. bmm_populate() makes a mapping resident as fast as the machine allows,
 * with as many threads as help; bmm_clear_parallel() zeroes what is resident.
 *
 * Ordering. Streaming operations write with non-temporal stores, which bypass
 * the cache and are weakly ordered. Until bmm_drain() has returned on the same
 * thread, nothing may read or partly rewrite the destination, and no pointer to
 * it may be published.
 *
 * Backends. The store instructions are picked by measurement, per operation and
 * size: the first calls of 4 KiB and more are timed and the fastest backend is
 * kept; from then on, calls read no clock and write nothing shared. Every
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

#ifdef __cplusplus
extern "C" {
#endif

#define BMM_EINVAL 22 /* EINVAL: value outside its documented range */

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
 * enum bmm_op - operations; backends are picked for each separately
 * @BMM_STAMP:           bmm_stamp() and bmm_fill()
 * @BMM_COPY:            bmm_copy()
 * @BMM_COPY_STREAMING:  bmm_copy_streaming()
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

#ifndef __KERNEL__

/* Flags of struct bmm_options. */
#define BMM_ON_NODE 1U /* node is set: take new pages only from there */
#define BMM_READ    2U /* populate for reading: shared files stay clean */

/**
 * struct bmm_options - how threads share a range
 * @size:     sizeof(struct bmm_options) in the calling program
 * @flags:    BMM_ON_NODE, BMM_READ, or 0
 * @threads:  most threads to use, the caller included; 0: as many as help
 * @node:     memory node, with BMM_ON_NODE; a policy set on the range itself
 *            (mbind) takes precedence
 * @progress: called on the calling thread every few milliseconds with the bytes
 *            done so far; any return value but 0 cancels. May be NULL
 * @context:  passed to @progress
 *
 * Usually all fields but @size are zero.
 */
struct bmm_options {
	size_t size;
	uint32_t flags;
	uint32_t threads;
	uint32_t node;
	int (*progress)(void *context, size_t done, size_t len);
	void *context;
};

/**
 * enum bmm_cause - why a range could not be populated, or was slow
 * @BMM_CAUSE_NONE:       no failure, or nothing was slow
 * @BMM_CAUSE_UNKNOWN:    the system does not say
 * @BMM_CAUSE_ARGUMENT:   an argument is wrong; nothing was done
 * @BMM_CAUSE_NODE:       the node does not exist, or policies are forbidden
 *                        here; nothing was done
 * @BMM_CAUSE_HOLE:       nothing is mapped there
 * @BMM_CAUSE_PROTECTED:  the mapping does not allow it
 * @BMM_CAUSE_SPECIAL:    a mapping that cannot be populated, such as a device's
 * @BMM_CAUSE_POOL:       no huge page is left in the pool
 * @BMM_CAUSE_BACKING:    the file is too short, or its file system is full
 * @BMM_CAUSE_POISONED:   a page of it has failed (hardware memory error)
 * @BMM_CAUSE_MEMORY:     out of memory: the cgroup, the node or the machine
 * @BMM_CAUSE_CANCELLED:  @progress cancelled
 * @BMM_CAUSE_FORKED:     this is the child of a fork() in @progress
 * @BMM_CAUSE_COMPACTION: the kernel moved pages to make huge ones
 * @BMM_CAUSE_RECLAIM:    the kernel had to free memory first
 */
enum bmm_cause {
	BMM_CAUSE_NONE,
	BMM_CAUSE_UNKNOWN,
	BMM_CAUSE_ARGUMENT,
	BMM_CAUSE_NODE,
	BMM_CAUSE_HOLE,
	BMM_CAUSE_PROTECTED,
	BMM_CAUSE_SPECIAL,
	BMM_CAUSE_POOL,
	BMM_CAUSE_BACKING,
	BMM_CAUSE_POISONED,
	BMM_CAUSE_MEMORY,
	BMM_CAUSE_CANCELLED,
	BMM_CAUSE_FORKED,
	BMM_CAUSE_COMPACTION,
	BMM_CAUSE_RECLAIM
};

/**
 * struct bmm_report - what became of a range
 * @size:       sizeof(struct bmm_report) in the calling program, set by it
 * @done:       bytes done
 * @reached:    everything before this address is done
 * @failed:     the page that failed, the lowest if there are several
 * @failed_len: its bytes; 0 if nothing failed
 * @ns:         time it took
 * @slow:       a piece that took more than eight times as long as the others
 * @slow_len:   its bytes; 0 if there was none
 * @slow_ns:    time it took
 * @usual_ns:   time that as many bytes took elsewhere
 * @error:      0, or the negative error number that was returned
 * @cause:      why it failed
 * @slow_cause: why the piece was slow
 * @threads:    most threads that worked at once, the caller included
 * @touched:    1 if pages were touched one by one: the kernel is older than
 *              MADV_POPULATE_WRITE (5.14), or forbids it
 */
struct bmm_report {
	size_t size;
	size_t done;
	void *reached;
	void *failed;
	size_t failed_len;
	uint64_t ns;
	void *slow;
	size_t slow_len;
	uint64_t slow_ns;
	uint64_t usual_ns;
	int error;
	enum bmm_cause cause;
	enum bmm_cause slow_cause;
	uint32_t threads;
	uint32_t touched;
};

int bmm_populate(void *addr, size_t len, const struct bmm_options *options,
		 struct bmm_report *report);
size_t bmm_report_text(const struct bmm_report *report, char *buf, size_t size);

int bmm_clear_parallel(void *dst, size_t len, const struct bmm_options *options,
		       struct bmm_report *report);

#endif

#ifdef __cplusplus
}
#endif

#endif
