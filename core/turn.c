// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Picks of backends: operations as samples, and how a pick is reported. */
#include "drain.h"
#include "text.h"
#include "turn.h"

/*
 * Stores complete long after their instructions: pending ones must neither be
 * charged to another operation nor go untimed. Without this, REP STOSB of 4 KiB
 * looked twice as fast as ordinary stores that take half as long again (Zen 5).
 */
static uint64_t settled_clock(void)
{
	bmm_finish_stores();
	return bmm_host_clock();
}

/*
 * What exceeds the last-level cache cannot stay in it, yet ordinary stores read
 * every line. In the measured part of a long operation the cache still absorbs
 * them, so they would seem the fastest. String instructions and memcpy() change
 * strategy at such lengths.
 */
static bool outgrown(const struct bmm_backend *backend, enum bmm_op op,
		     size_t len)
{
	size_t cache = bmm_host_llc();

	return !bmm_op_streams(op) && !backend->whole && cache && len > cache;
}

static void start(struct bmm_pick *pick, enum bmm_op op, size_t len)
{
	const struct bmm_backend *backend;
	unsigned int nr = 0;
	uint32_t skip = 0;

	for (; (backend = bmm_candidate(op, nr)); nr++)
		if (outgrown(backend, op, len))
			skip |= 1U << nr;
	bmm_pick_start(pick, nr, skip);
}

/**
 * bmm_turn_begin() - choose the backend for an operation
 * @turn: to pass to bmm_turn_end()
 * @pick: for such operations; zeroed before the first
 * @op:   the operation, below BMM_OPS
 *
 * While @pick measures, time runs until bmm_turn_end(): begin late, end early.
 *
 * Return: a backend.
 */
const struct bmm_backend *bmm_turn_begin(struct bmm_turn *turn,
					 struct bmm_pick *pick, enum bmm_op op)
{
	if (!bmm_get(&pick->nr))
		start(pick, op, 0);
	turn->pick = NULL;
	if (bmm_pick_decided(pick))
		return bmm_candidate(op, bmm_pick_best(pick));
	turn->pick = pick;
	turn->number = bmm_pick_turn(pick);
	/* A system call before each short operation would slow it down. */
	turn->disturbed = bmm_get(&pick->before);
	if (BMM_DISTURBED_CHEAP || !bmm_get(&pick->bytes)) {
		turn->disturbed = bmm_host_disturbed();
		bmm_set(&pick->before, turn->disturbed);
	}
	turn->begun = settled_clock();
	return bmm_candidate(op, bmm_pick_of(turn->number));
}

/**
 * bmm_turn_end() - record how long the operation took
 * @turn:  from bmm_turn_begin()
 * @bytes: how much was done, drained; 0: take no sample
 *
 * Disturbed samples are dropped, except every eighth: a program may fault in
 * memory with each call.
 *
 * Return: true for the one call that decides.
 */
bool bmm_turn_end(struct bmm_turn *turn, size_t bytes)
{
	struct bmm_pick *pick = turn->pick;
	uint64_t now;

	if (!pick || !bytes)
		return false;
	/* The clock first: a disturbance after it does not matter. */
	now = settled_clock();
	if ((BMM_DISTURBED_CHEAP || bmm_pick_completes(pick, bytes)) &&
	    turn->disturbed != bmm_host_disturbed() &&
	    __atomic_add_fetch(&pick->disturbed, 1, __ATOMIC_RELAXED) % 8) {
		if (!BMM_DISTURBED_CHEAP)
			bmm_pick_drop(pick);
		return false;
	}
	return bmm_pick_feed(pick, turn->number, bytes, now - turn->begun);
}

static void do_drained(const struct bmm_job *job,
		       const struct bmm_backend *backend)
{
	bmm_job_do(job, backend);
	if (bmm_op_streams(job->op))
		bmm_drain_stores();
}

/* Does @job without its first @n bytes. */
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
	do_drained(&rest, backend);
}

/*
 * How much of the operation the current candidate does. A loop over lines is as
 * fast on a part as on the whole, so a slow one need not do it all. The leader
 * is looked up only where it matters: short operations are to be timed without
 * a gap before each.
 */
static size_t share_of(const struct bmm_pick *pick, const struct bmm_job *job,
		       const struct bmm_backend *backend)
{
	size_t unit = job->op == BMM_STAMP ? job->image->size : 1;

	if (job->len < 2 * BMM_PICK_SAMPLE || backend->whole ||
	    backend == bmm_pick_backend(pick, job->op))
		return job->len;
	return (BMM_PICK_SAMPLE + unit - 1) / unit * unit;
}

/**
 * bmm_turn_job() - do an operation, and measure it while the pick needs samples
 * @pick: for such operations; zeroed before the first
 * @job:  the operation
 *
 * The whole operation is one sample of the candidate whose turn it is. But if
 * that is a loop and not the leader, it does only the first 2 MiB, and the
 * leader does the rest. Streaming stores are drained.
 */
void bmm_turn_job(struct bmm_pick *pick, const struct bmm_job *job)
{
	const struct bmm_backend *backend;
	struct bmm_job part = *job;
	struct bmm_turn turn;

	if (!bmm_get(&pick->nr))
		start(pick, job->op, job->len);
	backend = bmm_turn_begin(&turn, pick, job->op);
	part.len = share_of(pick, job, backend);
	do_drained(&part, backend);
	bmm_turn_end(&turn, part.len);
	if (part.len < job->len)
		do_rest(job, part.len, bmm_pick_backend(pick, job->op));
}

/**
 * bmm_pick_backend() - the backend that serves unless one is forced
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
 * bmm_pick_list() - list the backends, how fast they were, and which one serves
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
