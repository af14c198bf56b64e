// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Picks of backends: operations as samples, and what a pick says of itself. */
#include "drain.h"
#include "text.h"
#include "turn.h"

/*
 * A loop over cache lines is as fast in a part of an operation as in all of it,
 * so that a slow one need not do all; long enough for a second-level cache not
 * to take it in.
 */
#define PART ((size_t)4 << 20)

static void start(struct bmm_pick *pick, enum bmm_op op)
{
	unsigned int nr = 0;

	while (nr < BMM_CANDIDATES && bmm_candidate(op, nr))
		nr++;
	bmm_pick_start(pick, nr);
}

/**
 * bmm_turn_begin() - who does an operation
 * @turn: to end it with
 * @pick: of such operations; zeroed before the first
 * @op:   the operation, below BMM_OPS
 *
 * While @pick measures a clock runs until bmm_turn_end(): begin late, end early.
 *
 * Return: a backend.
 */
const struct bmm_backend *bmm_turn_begin(struct bmm_turn *turn,
					 struct bmm_pick *pick, enum bmm_op op)
{
	if (!bmm_get(&pick->nr))
		start(pick, op);
	turn->pick = NULL;
	if (bmm_pick_decided(pick))
		return bmm_candidate(op, bmm_pick_best(pick));
	turn->pick = pick;
	turn->number = bmm_pick_turn(pick);
	turn->disturbed = bmm_host_disturbed();
	turn->begun = bmm_host_clock();
	return bmm_candidate(op, bmm_pick_of(turn->number));
}

/**
 * bmm_turn_end() - learn how long it took
 * @turn:  from bmm_turn_begin()
 * @bytes: how much was done, drained; 0 ends it without a sample
 *
 * A disturbed sample is not counted, but for every eighth: a program may fault
 * its memory in by each call.
 *
 * Return: true for the one call that decides.
 */
bool bmm_turn_end(struct bmm_turn *turn, size_t bytes)
{
	uint64_t now;

	if (!turn->pick || !bytes)
		return false;
	/* The clock first: who is disturbed after it has been on time. */
	now = bmm_host_clock();
	if (turn->disturbed != bmm_host_disturbed() &&
	    __atomic_add_fetch(&turn->pick->disturbed, 1, __ATOMIC_RELAXED) % 8)
		return false;
	return bmm_pick_feed(turn->pick, turn->number, bytes, now - turn->begun);
}

/* @job without its first @n bytes. */
static void do_rest(const struct bmm_job *job, size_t n,
		    const struct bmm_backend *backend)
{
	struct bmm_job rest = *job;
	struct bmm_image image;

	if (job->op == BMM_STAMP) {
		bmm_image_at(&image, job->image, n / job->image->size);
		rest.image = &image;
	}
	rest.dst = (char *)job->dst + n;
	rest.src = (const char *)job->src + n;
	rest.len -= n;
	bmm_job_do(&rest, backend);
}

/* How much of it the one whose turn it is does. */
static size_t share_of(const struct bmm_backend *backend,
		       const struct bmm_backend *best, const struct bmm_job *job)
{
	size_t part = PART;

	if (backend == best || backend->whole || job->len < 2 * PART)
		return job->len;
	return job->op == BMM_STAMP ? part - part % job->image->size : part;
}

/**
 * bmm_turn_job() - do an operation, and measure it if that is still wanted
 * @pick: of such operations; zeroed before the first
 * @job:  the operation
 *
 * All of it is one sample of the candidate whose turn it is; but of a loop that
 * is not the leader only the first 4 MiB, and the leader does the rest. Drained
 * if it streams.
 *
 * Return: true for the one call that decides.
 */
bool bmm_turn_job(struct bmm_pick *pick, const struct bmm_job *job)
{
	struct bmm_turn turn;
	const struct bmm_backend *backend = bmm_turn_begin(&turn, pick, job->op);
	const struct bmm_backend *best = bmm_candidate(job->op,
						       bmm_pick_best(pick));
	size_t n = share_of(backend, best, job);
	struct bmm_job part = *job;
	bool decided;

	part.len = n;
	bmm_job_do(&part, backend);
	if (bmm_op_streams(job->op))
		bmm_drain_stores();
	decided = bmm_turn_end(&turn, n);
	if (n < job->len) {
		do_rest(job, n, best);
		if (bmm_op_streams(job->op))
			bmm_drain_stores();
	}
	return decided;
}

/**
 * bmm_pick_backend() - who serves unless another is forced
 * @pick: the pick
 * @op:   the operation that it is for
 *
 * Return: the one decided on, else the leader so far, else the first guess.
 */
const struct bmm_backend *bmm_pick_backend(const struct bmm_pick *pick,
					   enum bmm_op op)
{
	return bmm_candidate(op, bmm_get(&pick->nr) ? bmm_pick_best(pick) : 0);
}

/* "=12.3", GB/s. */
static void add_rate(struct bmm_text *text, uint32_t mb)
{
	char digits[16], *p = digits + sizeof(digits);
	uint32_t tenths = (mb + 50) / 100;

	*--p = 0;
	*--p = (char)('0' + tenths % 10);
	*--p = '.';
	do {
		tenths /= 10;
		*--p = (char)('0' + tenths % 10);
	} while (tenths >= 10);
	*--p = '=';
	bmm_text_add(text, p);
}

static void add_backend(struct bmm_text *text, const struct bmm_backend *backend,
			uint32_t mb, bool serves)
{
	if (text->len)
		bmm_text_add(text, " ");
	bmm_text_add(text, serves ? "[" : "");
	bmm_text_add(text, backend->name);
	if (mb)
		add_rate(text, mb);
	bmm_text_add(text, serves ? "]" : "");
}

/**
 * bmm_pick_list() - what there is, how fast it was, and what serves
 * @pick:   the pick
 * @op:     the operation that it is for
 * @forced: the backend that is forced, or NULL
 * @buf:    result, such as "generic [movdir64b=37.8] movnti=36.1": all backends
 *          that can be forced here, with GB/s where they were measured, the one
 *          that serves in brackets; terminated, cut to @size - 1 bytes
 * @size:   bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole list, without the terminator.
 */
size_t bmm_pick_list(const struct bmm_pick *pick, enum bmm_op op,
		     const struct bmm_backend *forced, char *buf, size_t size)
{
	const struct bmm_backend *serves = forced ? forced :
						    bmm_pick_backend(pick, op);
	struct bmm_text text = { .buf = buf, .size = size };
	const struct bmm_backend *backend;
	unsigned int k = 0;
	uint32_t mb;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		if (!bmm_backend_can(backend, op))
			continue;
		mb = 0;
		if (backend == bmm_candidate(op, k))
			mb = bmm_pick_rate(pick, k++);
		add_backend(&text, backend, mb, backend == serves);
	}
	bmm_text_end(&text);
	return text.len;
}
