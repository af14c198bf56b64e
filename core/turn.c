// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The choosers of all operations, and the backends as their candidates.
 *
 * The candidates of an operation are the backends of the table that can, in
 * its order.
 */
#include "turn.h"

#define get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

#define ASKED (1U << 31) /* in able[]: the CPU has been asked */

struct bmm_quick bmm_quick[BMM_OPS];

static struct bmm_chooser choosers[BMM_CHOOSE_KEYS];
static uint32_t able[BMM_OPS]; /* bit i: backend i can */

static uint32_t who_can(enum bmm_op op)
{
	uint32_t mask = get(&able[op]);
	size_t i;

	if (mask)
		return mask;
	for (i = 0; i < bmm_backends_nr; i++)
		if (bmm_backend_can(bmm_backends[i], op))
			mask |= 1U << i;
	set(&able[op], mask | ASKED);
	return mask | ASKED;
}

/* Candidate number @k, or NULL if there are not so many. */
static const struct bmm_backend *candidate(enum bmm_op op, unsigned int k)
{
	uint32_t mask = who_can(op);
	size_t i;

	for (i = 0; i < bmm_backends_nr; i++)
		if (mask >> i & 1 && !k--)
			return bmm_backends[i];
	return NULL;
}

static struct bmm_chooser *chooser_of(enum bmm_op op, size_t len, int node)
{
	return &choosers[bmm_choose_key(op, len, node)];
}

/* From this class on (16 MiB), a cache may be too small for an operation. */
#define LONG_CLASS 6U

static void start(struct bmm_chooser *c, enum bmm_op op, unsigned int class)
{
	const struct bmm_backend *backend;
	unsigned int nr, lengthy = 0;

	for (nr = 0; (backend = candidate(op, nr)); nr++)
		if (backend->flags & BMM_LENGTHY)
			lengthy |= 1U << nr;
	bmm_chooser_init(c, nr);
	if (class >= LONG_CLASS)
		bmm_choose_lengthy(c, lengthy);
}

/* Who does an operation that nobody measures. */
static void whole_by(struct bmm_turn *turn, enum bmm_op op,
		     const struct bmm_backend *forced)
{
	turn->chooser = NULL;
	turn->backend = forced;
	if (!forced) {
		turn->backend = bmm_backend_default(op);
		set(&bmm_quick[op].tiny, turn->backend);
	}
}

/**
 * bmm_turn_begin() - who does the next part of an operation, and how much
 * @turn:  result
 * @op:    the operation, below BMM_OPS
 * @whole: bytes of all of it: the chooser is that of such lengths
 * @left:  bytes that are left to do, at least 1
 * @node:  memory node of the destination; negative if not known
 *
 * A clock runs until bmm_turn_end(): begin late, end early.
 *
 * Return: bytes to do, 1 to @left. A caller may do fewer (whole records,
 * bounded latency) if it says so to bmm_turn_end(), or more.
 */
size_t bmm_turn_begin(struct bmm_turn *turn, enum bmm_op op, size_t whole,
		      size_t left, int node)
{
	const struct bmm_backend *forced = get(&bmm_quick[op].forced);
	unsigned int class = bmm_choose_class(whole);
	struct bmm_chooser *c;
	size_t n;

	if (forced || whole < BMM_TURN_MIN) {
		whole_by(turn, op, forced);
		return left;
	}
	c = chooser_of(op, whole, node);
	if (!get(&c->nr))
		start(c, op, class);
	turn->chooser = c;
	turn->candidate = bmm_choose_next(c);
	turn->backend = candidate(op, turn->candidate);
	turn->slot = whole < BMM_TURN_OFTEN ? &bmm_quick[op].chosen[class] :
					      NULL;
	n = bmm_choose_chunk(c, turn->candidate, left);
	turn->switches = bmm_host_switches();
	turn->begun = bmm_host_clock();
	return n;
}

/* What short operations take from now on, until another one is due. */
static void note(const struct bmm_turn *turn)
{
	bool settled = bmm_choose_settled(turn->chooser) &&
		       bmm_choose_best(turn->chooser) == turn->candidate;
	const struct bmm_backend *noted = settled ? turn->backend : NULL;

	/* Written when it changes: other CPUs read this line all the time. */
	if (get(turn->slot) != noted)
		set(turn->slot, noted);
}

/**
 * bmm_turn_end() - drain, and learn how long it took
 * @turn:  from bmm_turn_begin()
 * @bytes: how much was done
 *
 * What was interrupted by another task is not counted, where the host knows.
 */
void bmm_turn_end(struct bmm_turn *turn, size_t bytes)
{
	uint64_t now;

	turn->backend->drain();
	if (!turn->chooser)
		return;
	/* The clock first: who is interrupted after it has been on time. */
	now = bmm_host_clock();
	if (turn->switches == bmm_host_switches())
		bmm_choose_feed(turn->chooser, turn->candidate, bytes,
				now - turn->begun);
	if (turn->slot)
		note(turn);
}

/**
 * bmm_turn_forget() - measure again
 * @op: the operation, below BMM_OPS
 *
 * For every length and every node.
 */
void bmm_turn_forget(enum bmm_op op)
{
	unsigned int class;
	size_t len;
	int node;

	for (class = 0; class < BMM_CHOOSE_CLASSES; class++) {
		len = 1UL << (13 + 2 * class); /* in the middle of it */
		set(&bmm_quick[op].chosen[class], NULL);
		for (node = 0; node < (int)BMM_CHOOSE_NODES; node++)
			bmm_choose_reset(chooser_of(op, len, node));
	}
}

/**
 * bmm_backend_serving() - who would do an operation now
 * @op:   the operation, below BMM_OPS
 * @len:  its length in bytes
 * @node: memory node of its destination; negative if not known
 *
 * Return: the forced backend, else the best by what was measured, else the
 * fastest guess; never NULL.
 */
const struct bmm_backend *bmm_backend_serving(enum bmm_op op, size_t len,
					      int node)
{
	const struct bmm_backend *backend = get(&bmm_quick[op].forced);
	const struct bmm_chooser *c = chooser_of(op, len, node);

	if (!backend && len >= BMM_TURN_MIN && get(&c->nr))
		backend = candidate(op, bmm_choose_best(c));
	return backend ? backend : bmm_backend_default(op);
}
