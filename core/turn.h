/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * turn.h - who does an operation: the forced backend, or the one that the
 * chooser names; a host with a loop of its own takes it part by part
 *
 *	for (done = 0; done < whole; done += n) {
 *		n = bmm_turn_begin(&turn, op, whole, whole - done, node);
 *		... do n bytes, or fewer, with turn.backend ...
 *		bmm_turn_end(&turn, n);
 *	}
 *
 * Thread safety: as choose.h says; a turn belongs to its caller.
 */
#ifndef BMM_TURN_H
#define BMM_TURN_H

#include "bmm.h"
#include "choose.h"

/**
 * struct bmm_turn - a part of an operation
 * @backend:   who does it
 * @chooser:   who learns how long it took; NULL if nobody does
 * @candidate: @backend's number there
 * @slot:      where to note the chooser's answer for short operations, or NULL
 * @begun:     bmm_host_clock() at its begin
 * @switches:  bmm_host_switches() then
 */
struct bmm_turn {
	const struct bmm_backend *backend;
	struct bmm_chooser *chooser;
	unsigned int candidate;
	const struct bmm_backend **slot;
	uint64_t begun;
	unsigned long switches;
};

size_t bmm_turn_begin(struct bmm_turn *turn, enum bmm_op op, size_t whole,
		      size_t left, int node);
void bmm_turn_end(struct bmm_turn *turn, size_t bytes);
void bmm_turn_forget(enum bmm_op op);

void bmm_turn_clear(void *dst, size_t len, enum bmm_op op, int node);

/* One of the two ways to clear, by its operation; not drained. */
static inline void bmm_backend_clear(const struct bmm_backend *backend,
				     enum bmm_op op, void *dst, size_t len)
{
	if (op == BMM_CLEAR)
		backend->clear(dst, len);
	else
		backend->clear_streaming(dst, len);
}

const struct bmm_backend *bmm_backend_serving(enum bmm_op op, size_t len,
					      int node);

/* Below, nothing is measured: a clock's tick is too large a part of it. */
#define BMM_TURN_MIN 4096U
/*
 * Below, only one operation of 16 is measured, and one of 64 in the lowest two
 * classes: to measure costs 130 ns, half of what it takes to clear 4 KiB.
 */
#define BMM_TURN_OFTEN (1UL << 20)

/**
 * struct bmm_quick - what short operations look at, and nothing else
 * @forced: the forced backend, or NULL
 * @tiny:   for less than BMM_TURN_MIN; NULL if not looked for yet
 * @chosen: by class of length, NULL while the chooser has not settled
 */
struct bmm_quick {
	const struct bmm_backend *forced;
	const struct bmm_backend *tiny;
	const struct bmm_backend *chosen[BMM_CHOOSE_CLASSES];
} __attribute__((__aligned__(128)));

extern struct bmm_quick bmm_quick[BMM_OPS];

/**
 * bmm_turn_quick() - who does a short operation, as a whole and not measured
 * @op:  the operation, below BMM_OPS
 * @len: its length in bytes
 *
 * Return: a backend (the forced one at any length), or NULL if the operation is
 * to be done in turns.
 */
static inline const struct bmm_backend *bmm_turn_quick(enum bmm_op op,
						       size_t len)
{
	struct bmm_quick *quick = &bmm_quick[op];
	const struct bmm_backend *backend;
	unsigned int class;

	backend = __atomic_load_n(&quick->forced, __ATOMIC_RELAXED);
	if (backend)
		return backend;
	if (len < BMM_TURN_MIN)
		return __atomic_load_n(&quick->tiny, __ATOMIC_RELAXED);
	class = bmm_choose_class(len);
	if (len >= BMM_TURN_OFTEN || !(bmm_host_turn() % (class < 2 ? 64 : 16)))
		return NULL;
	return __atomic_load_n(&quick->chosen[class], __ATOMIC_RELAXED);
}

#endif
