/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * choose.h - which candidate does the work: calibrated on the job
 *
 * A chooser ranks up to BMM_CHOOSE_MAX candidates (backends, in a list that
 * the caller keeps) by the time they took for real work. It has no clock and
 * no source of chance: what it answers depends only on the calls made to it.
 *
 *	while (left) {
 *		k = bmm_choose_next(c);
 *		n = bmm_choose_chunk(c, k, left);
 *		... do n bytes with candidate k, which took ns ...
 *		bmm_choose_feed(c, k, n, ns);
 *		left -= n;
 *	}
 *
 * What is timed includes the drain. The first chunks calibrate; then one
 * candidate wins, and about one chunk in 1024 tries another one.
 *
 * Thread safety: a chooser may be used by any number of CPUs at once, without
 * a lock. They may lose each other's samples; every answer is in range. No
 * call orders any other memory access, sleeps, or allocates.
 */
#ifndef BMM_CHOOSE_H
#define BMM_CHOOSE_H

#include "bmm.h"

#define BMM_CHOOSE_MAX	  8U /* candidates of one chooser */
#define BMM_CHOOSE_WINDOW 9U /* samples kept of each */

#define BMM_CHOOSE_CLASSES 8U /* of length: powers of four */
#define BMM_CHOOSE_NODES   8U
#define BMM_CHOOSE_KEYS	   (BMM_OPS * BMM_CHOOSE_CLASSES * BMM_CHOOSE_NODES)

/**
 * struct bmm_candidate - what is known of one candidate
 * @sample:  ns per MiB; the oldest makes room for a new one
 * @cost:    their median, 0 if there is none
 * @samples: how many there are; from BMM_CHOOSE_WINDOW on, all, and how many of
 *           them the newest round has replaced is added
 * @asked:   chunks handed to it in calibration
 * @shun:    turns of re-trial it is still to be left out of
 * @brief:   turns in which it is tried with a short chunk until the next in
 *           which it gets a long one
 */
struct bmm_candidate {
	uint32_t sample[BMM_CHOOSE_WINDOW];
	uint32_t cost;
	uint8_t samples;
	uint8_t asked;
	uint8_t shun;
	uint8_t brief;
};

/**
 * struct bmm_chooser - private to choose*.c, but for its size and @nr
 * @nr:        candidates; 0 before bmm_chooser_init()
 * @winner:    candidate + 1, or 0 while calibrating
 * @trial:     candidate + 1 on trial against the winner, or 0
 * @armed:     candidate + 1 that the next chunk goes to, or 0
 * @lengthy:   whether the one on trial gets a long chunk
 * @long_mask: who may be far faster in long chunks; see bmm_choose_lengthy()
 * @long_due:  who of them has not had a long chunk yet
 * @long_won:  whether it is long chunks that make the winner fast
 * @cursor:    whose turn it was
 * @clock:     work done: chunks, or MiB where chunks are larger
 * @due:       when the next re-trial is
 * @gap:       from one re-trial to the next
 *
 * All zero is a valid state: one that always answers 0.
 */
struct bmm_chooser {
	uint8_t nr;
	uint8_t winner;
	uint8_t trial;
	uint8_t armed;
	uint8_t lengthy;
	uint8_t long_mask;
	uint8_t long_due;
	uint8_t long_won;
	uint8_t cursor;
	uint32_t clock;
	uint32_t due;
	uint32_t gap;
	struct bmm_candidate candidate[BMM_CHOOSE_MAX];
} __attribute__((__aligned__(64))); /* two of them share no cache line */

/**
 * bmm_choose_class() - the class of a length
 * @len: bytes
 *
 * A few instructions and no branch: for callers with small operations.
 *
 * Return: 0 below 16 KiB, 1 below 64 KiB, and so on by powers of four, up to 7
 * from 64 MiB on. The best backend differs that much on one CPU: around 2 MiB
 * the cache helps, at 32 MiB it is in the way.
 */
static inline unsigned int bmm_choose_class(size_t len)
{
	unsigned int top = 8 * sizeof(long) - 1;
	unsigned int class = (top - 12 - __builtin_clzl(len | 1UL << 12)) / 2;

	return class < BMM_CHOOSE_CLASSES ? class : BMM_CHOOSE_CLASSES - 1;
}

unsigned int bmm_choose_key(enum bmm_op op, size_t len, int node);

int bmm_chooser_init(struct bmm_chooser *c, unsigned int candidates_nr);
void bmm_choose_lengthy(struct bmm_chooser *c, unsigned int mask);
void bmm_choose_reset(struct bmm_chooser *c);

unsigned int bmm_choose_next(struct bmm_chooser *c);
size_t bmm_choose_chunk(struct bmm_chooser *c, unsigned int candidate,
			size_t left);
void bmm_choose_feed(struct bmm_chooser *c, unsigned int candidate,
		     size_t bytes, uint64_t ns);

bool bmm_choose_settled(const struct bmm_chooser *c);
unsigned int bmm_choose_best(const struct bmm_chooser *c);
uint32_t bmm_choose_cost(const struct bmm_chooser *c, unsigned int candidate);

#endif
