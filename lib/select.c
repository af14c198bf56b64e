// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which backend serves a process: selected by calibration, at the first call of
 * an operation, or by the user.
 */
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "cpu.h"
#include "select.h"
#include "text.h"

__attribute__((__aligned__(64)))
const struct bmm_backend *bmm_selections[BMM_OPS][BMM_CLASSES];

#define UNSET (SIZE_MAX - 1)

size_t bmm_streams_above[BMM_OPS] = { [0 ... BMM_OPS - 1] = UNSET };

static struct bmm_calibration calibrations[BMM_OPS][BMM_CLASSES];
static char buffer[BMM_CALIBRATE_BYTES] __attribute__((__aligned__(4096)));

static const char *const variables[BMM_OPS] = {
	[BMM_STAMP] = "BULKMM_STAMP",
	[BMM_COPY] = "BULKMM_COPY",
	[BMM_COPY_STREAMING] = "BULKMM_COPY_STREAMING",
	[BMM_CLEAR] = "BULKMM_CLEAR",
	[BMM_CLEAR_STREAMING] = "BULKMM_CLEAR_STREAMING",
};

/* The calls that a class stands for. */
static struct bmm_calls calls_of(enum bmm_op op, unsigned int class)
{
	static const size_t len[] = { 64, 4096, 32768, BMM_CALIBRATE_EXTENT };
	bool large = class / 2 == 3;
	struct bmm_calls calls = { .op = op,
				   .len = len[class / 2],
				   .hot = !large || !bmm_op_streams(op),
				   .cold = large,
				   .skewed = class % 2 };

	/* Evicting memory for samples of their own would take 3 ms more. */
	if (!large)
		calls.longer = &calibrations[op][6 + class % 2];
	return calls;
}

/* The classes of an operation: only copies differ by their source's offset. */
static unsigned int step_of(enum bmm_op op)
{
	return op == BMM_COPY || op == BMM_COPY_STREAMING ? 1 : 2;
}

/* What serves before anything is measured, and what is never measured. */
static const struct bmm_backend *unmeasured(const struct bmm_calls *calls)
{
	const struct bmm_backend *list[BMM_CANDIDATES];

	/* The host's memcpy() and memset(), which are inlined where possible. */
	if (calls->len < BMM_SHORT && !bmm_op_streams(calls->op))
		return &bmm_generic;
	bmm_candidates(calls, list);
	return list[0];
}

/* "" too for a program that runs with more rights than its user. */
static const char *setting(enum bmm_op op)
{
	const char *value = secure_getenv(variables[op]);

	return value ? value : "";
}

/*
 * One name for all classes, or one for each, separated by commas. Returns how
 * many; 0 for "fastest" or nothing, which is none; -1 if one is not valid here.
 */
static int parse(enum bmm_op op, const char *text, size_t len,
		 const struct bmm_backend **row)
{
	unsigned int class, nr = 0, step = step_of(op);
	size_t from = 0, to;

	memset(row, 0, BMM_CLASSES * sizeof(*row));
	if (!len || (len == 7 && !memcmp(text, "fastest", 7)))
		return 0;
	for (; from <= len && nr < BMM_CLASSES / step; from = to + 1, nr++) {
		for (to = from; to < len && text[to] != ',';)
			to++;
		row[nr * step] = bmm_backend_find(op, text + from, to - from);
		if (!row[nr * step])
			return -1;
	}
	if (from <= len || (nr > 1 && nr < BMM_CLASSES / step))
		return -1;
	for (class = 0; class < BMM_CLASSES; class++)
		row[class] = nr == 1 ? row[0] : row[class - class % step];
	return (int)nr;
}

/*
 * Above the size of the cache, where the source of a copy has its place, too;
 * never if one backend is forced for all calls.
 */
static size_t streams_above(enum bmm_op op, bool forced)
{
	size_t cache = forced || bmm_op_streams(op) ? 0 : bmm_host_llc();

	return !cache ? SIZE_MAX : op == BMM_COPY ? cache / 2 : cache;
}

/* Unless somebody was first: a user's selection stays. */
static void settle(const struct bmm_backend **to,
		   const struct bmm_backend *backend)
{
	const struct bmm_backend *none = NULL;

	__atomic_compare_exchange_n(to, &none, backend, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* What needs no measurement. */
static void begin_op(enum bmm_op op)
{
	const char *text = setting(op);
	const struct bmm_backend *row[BMM_CLASSES];
	int nr = parse(op, text, strlen(text), row), class;
	size_t unset = UNSET, size = streams_above(op, nr == 1);

	__atomic_compare_exchange_n(&bmm_streams_above[op], &unset, size, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	for (class = 0; nr > 0 && class < (int)BMM_CLASSES; class++)
		settle(&bmm_selections[op][class], row[class]);
}

/* Threads that race do the same. */
static void begin(void)
{
	static bool begun;
	int op;

	if (__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		return;
	for (op = 0; op < (int)BMM_OPS; op++)
		begin_op((enum bmm_op)op);
	__atomic_store_n(&begun, true, __ATOMIC_RELEASE);
}

static bool calibrated(enum bmm_op op)
{
	unsigned int class = 0;

	while (class < BMM_CLASSES && bmm_get(&bmm_selections[op][class]))
		class++;
	return class == BMM_CLASSES;
}

static void calibrate(enum bmm_op op)
{
	unsigned int class, of, step = step_of(op);
	struct bmm_calibration *made;
	struct bmm_calls calls;

	/*
	 * A page that was only read is the kernel's page of zeros, for every
	 * address the same 4 KiB: a source that is always in the cache.
	 */
	if (step == 1)
		memset(buffer, 1, sizeof(buffer));
	/*
	 * The longest calls first: for its first 20 us or so with wide vectors,
	 * a CPU may run at a part of its speed, and short ones take no longer.
	 */
	for (class = BMM_CLASSES; class;) {
		class -= step;
		made = &calibrations[op][class];
		calls = calls_of(op, class);
		if (calls.len < BMM_SHORT)
			made->selected = unmeasured(&calls);
		else
			bmm_calibrate(&calls, buffer, made);
		for (of = 0; of < step; of++)
			settle(&bmm_selections[op][class + of], made->selected);
	}
}

/* ns from which a calibration counts as given up: by a fork, in the child. */
#define GIVEN_UP 1000000000U

/*
 * One thread at a time; returns false if another one is at it, or this one in a
 * signal handler.
 */
static bool calibrate_alone(enum bmm_op op)
{
	static uint64_t since;
	uint64_t now, before = bmm_get(&since);

	begin();
	if (calibrated(op))
		return true;
	now = bmm_host_clock() | 1;
	if ((before && now - before < GIVEN_UP) ||
	    !__atomic_compare_exchange_n(&since, &before, now, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	calibrate(op);
	__atomic_store_n(&since, 0, __ATOMIC_RELEASE);
	return true;
}

/* A measurement that a fork or a signal interrupts is given up in the end. */
static void await(enum bmm_op op)
{
	while (!calibrate_alone(op)) {
	}
}

/**
 * bmm_select() - the backend for a call, if none was selected before
 * @op:    the operation, below BMM_OPS
 * @class: bmm_class() of the call
 *
 * Return: the fastest, as measured now; the first candidate for short calls,
 * which nothing is measured for, and while another thread measures.
 */
const struct bmm_backend *bmm_select(enum bmm_op op, unsigned int class)
{
	const struct bmm_calls calls = calls_of(op, class);
	const struct bmm_backend *found;

	begin();
	if (calls.len < BMM_SHORT)
		settle(&bmm_selections[op][class], unmeasured(&calls));
	else
		calibrate_alone(op);
	found = bmm_get(&bmm_selections[op][class]);
	return found ? found : unmeasured(&calls);
}

/**
 * bmm_measure() - select the backends of all operations now
 *
 * For programs that must not spend 2 to 5 ms on it at the first call of each
 * operation, such as before latency matters or a sandbox begins. Returns when
 * all are selected, whichever thread measures.
 */
void bmm_measure(void)
{
	int op;

	for (op = 0; op < (int)BMM_OPS; op++)
		await((enum bmm_op)op);
}

/**
 * bmm_backend_select() - force a backend, or have the fastest selected
 * @op:   the operation
 * @name: a name from bmm_backend_list(), which serves calls of any length; or
 *        what bmm_backend_selection() returned; "fastest" discards what was
 *        measured and has it measured again. Not necessarily terminated
 * @len:  its length in bytes; 0 means "fastest"
 *
 * Calls in progress finish with the backend they have.
 *
 * Return: 0, or -BMM_EINVAL if there is no such operation, or no such backend
 * for it on this CPU (nothing changes).
 */
int bmm_backend_select(enum bmm_op op, const char *name, size_t len)
{
	const struct bmm_backend *row[BMM_CLASSES];
	unsigned int class, k;
	int nr;

	begin();
	if ((unsigned int)op >= BMM_OPS)
		return -BMM_EINVAL;
	nr = parse(op, name, len, row);
	if (nr < 0)
		return -BMM_EINVAL;
	bmm_set(&bmm_streams_above[op], streams_above(op, nr == 1));
	for (class = 0; class < BMM_CLASSES; class++) {
		for (k = 0; k < BMM_CANDIDATES; k++)
			bmm_set(&calibrations[op][class].rate[k], 0);
		bmm_set(&bmm_selections[op][class], row[class]);
	}
	return 0;
}

/**
 * bmm_backend_selection() - the selection of an operation as text
 * @op:   the operation; measured now if it was not, whichever thread measures
 * @buf:  result, a name, or one for each class of calls, such as
 *        "generic,avx512,avx512,rep-b": for bmm_backend_select() or the
 *        operation's variable in another process on the same kind of CPU, which
 *        then need not measure; terminated, cut to @size - 1 bytes
 * @size: bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole text, without the terminator; 0 if there is
 * no such operation.
 */
size_t bmm_backend_selection(enum bmm_op op, char *buf, size_t size)
{
	struct bmm_text text = { .buf = buf, .size = size };
	bool valid = (unsigned int)op < BMM_OPS;
	unsigned int class;
	size_t above;

	if (valid)
		await(op);
	for (class = 0; valid && class < BMM_CLASSES; class += step_of(op)) {
		const struct bmm_backend *found = bmm_get(
			&bmm_selections[op][class]);

		found = found ? found : bmm_select(op, class);
		bmm_text_add(&text, class ? "," : "");
		bmm_text_add(&text, found->name);
		/* One that is forced does not stream: the name alone says so. */
		above = bmm_get(&bmm_streams_above[op]);
		if (above != streams_above(op, false))
			break;
	}
	bmm_text_end(&text);
	return text.len;
}

/**
 * bmm_backend_list() - list the backends, and which one is selected
 * @op:   the operation
 * @len:  length of the operations in question: the fastest backend differs by
 *        size
 * @buf:  result, such as "movnti=36.1 [movdir64b=37.8] generic": names that are
 *        valid here for @op, or for the streaming operation that serves
 *        operations of @len bytes because they outgrow the cache; GB/s of those
 *        measured for about so many; in brackets the one that serves (a copy
 *        whose source and destination have the same offset within a cache
 *        line), or would before anything is measured; terminated, cut to
 *        @size - 1 bytes
 * @size: bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole list, without the terminator; 0 if there is
 * no such operation.
 */
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size)
{
	unsigned int class = bmm_class(len, 0);
	struct bmm_text text = { .buf = buf, .size = size };
	const struct bmm_backend *selected;
	struct bmm_calls calls;

	if ((unsigned int)op < BMM_OPS) {
		begin();
		op = bmm_serves(op, len);
		calls = calls_of(op, class);
		selected = bmm_get(&bmm_selections[op][class]);
		bmm_calibration_list(&text, &calibrations[op][class], &calls,
				     selected ? selected : unmeasured(&calls));
	}
	bmm_text_end(&text);
	return text.len;
}

#define SHOWN 40 /* characters shown of an invalid value */

/* A value may contain anything, terminal control sequences included. */
static void add_printable(struct bmm_text *text, const char *value)
{
	char shown[2] = "";
	size_t i;

	for (i = 0; value[i] && i < SHOWN; i++) {
		shown[0] = value[i] < ' ' || value[i] > '~' ? '?' : value[i];
		bmm_text_add(text, shown);
	}
	bmm_text_add(text, value[i] ? "..." : "");
}

/**
 * bmm_environment_error() - what is wrong with the BULKMM_ variables
 * @buf:  result, such as "BULKMM_COPY=movnit: no such backend here: fastest
 *        rep-b plain generic", for the first variable that names no backend of
 *        its operation on this CPU; empty if all are valid; terminated, cut to
 *        @size - 1 bytes
 * @size: bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * BULKMM_STAMP, BULKMM_COPY, BULKMM_COPY_STREAMING, BULKMM_CLEAR and
 * BULKMM_CLEAR_STREAMING each force a backend for their operation, as
 * bmm_backend_select() does. They are read once, at the first call that needs a
 * backend, and ignored in a program that runs with more rights than its user.
 * An invalid one changes nothing and prints nothing: a program that wants to
 * tell its user calls this.
 *
 * Return: the length of the whole text, without the terminator; 0 if all are
 * valid.
 */
size_t bmm_environment_error(char *buf, size_t size)
{
	static const struct bmm_calibration none;
	struct bmm_text text = { .buf = buf, .size = size };
	const struct bmm_backend *row[BMM_CLASSES];
	struct bmm_calls calls = { 0 };
	const char *name;
	int op;

	for (op = 0; op < (int)BMM_OPS && !text.len; op++) {
		calls.op = (enum bmm_op)op;
		name = setting(calls.op);
		if (parse(calls.op, name, strlen(name), row) >= 0)
			continue;
		bmm_text_add(&text, variables[op]);
		bmm_text_add(&text, "=");
		add_printable(&text, name);
		bmm_text_add(&text, ": no such backend here: fastest ");
		bmm_calibration_list(&text, &none, &calls, NULL);
	}
	bmm_text_end(&text);
	return text.len;
}
