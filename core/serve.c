// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The backend picked for each operation and size, or forced by the user. */
#include "serve.h"
#include "text.h"
#include "turn.h"

#ifndef BMM_VERSION
#define BMM_VERSION "unknown"
#endif

/* In a cache line of its own, away from anything written often. */
__attribute__((__aligned__(128)))
const struct bmm_backend *bmm_served[BMM_OPS][BMM_CLASSES];

static const struct bmm_backend *forced[BMM_OPS];
static struct bmm_pick picks[BMM_OPS][BMM_CLASSES];

static const char *const settings[BMM_OPS] = {
	[BMM_STAMP] = "BULKMM_STAMP",
	[BMM_COPY] = "BULKMM_COPY",
	[BMM_COPY_STREAMING] = "BULKMM_COPY_STREAMING",
	[BMM_CLEAR] = "BULKMM_CLEAR",
	[BMM_CLEAR_STREAMING] = "BULKMM_CLEAR_STREAMING",
};

static const char fastest[] = "fastest";

#define SHOWN 40 /* characters shown of an invalid value */

static bool is_fastest(const char *name, size_t len)
{
	size_t i;

	if (len && len != sizeof(fastest) - 1)
		return false;
	for (i = 0; i < len; i++)
		if (name[i] != fastest[i])
			return false;
	return true;
}

/* Unless another thread was first: its value is newer, or the same. */
static void settle(const struct bmm_backend **to,
		   const struct bmm_backend *backend)
{
	const struct bmm_backend *none = NULL;

	__atomic_compare_exchange_n(to, &none, backend, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* @backend for every size; NULL: whatever will be picked. */
static void force(enum bmm_op op, const struct bmm_backend *backend)
{
	unsigned int class;

	bmm_set(&forced[op], backend);
	for (class = 0; class < BMM_CLASSES; class++) {
		if (!backend)
			bmm_set(&picks[op][class].nr, 0);
		bmm_set(&bmm_served[op][class], backend);
	}
	if (!backend)
		bmm_set(&bmm_served[op][0], bmm_candidate(op, 0));
}

static size_t length_of(const char *s)
{
	size_t len = 0;

	while (s && s[len])
		len++;
	return len;
}

static void begin_op(enum bmm_op op)
{
	const char *name = bmm_host_setting(settings[op]);
	size_t len = length_of(name);
	const struct bmm_backend *found = NULL;
	unsigned int class;

	if (!is_fastest(name, len))
		found = bmm_backend_find(op, name, len);
	if (!found) {
		settle(&bmm_served[op][0], bmm_candidate(op, 0));
		return;
	}
	settle(&forced[op], found);
	for (class = 0; class < BMM_CLASSES; class++)
		settle(&bmm_served[op][class], found);
}

/* Threads that race find the same; a selection made meanwhile stays. */
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

/**
 * bmm_serve() - do an operation that has no backend yet
 * @job: the operation
 */
void bmm_serve(const struct bmm_job *job)
{
	unsigned int class = bmm_class(job->len);
	const struct bmm_backend *backend;
	struct bmm_pick *pick = &picks[job->op][class];

	begin();
	backend = bmm_get(&bmm_served[job->op][class]);
	if (backend) {
		bmm_job_do(job, backend);
		return;
	}
	bmm_turn_job(pick, job);
	/* A single candidate is decided on from the start. */
	if (bmm_get(&pick->nr) && bmm_pick_decided(pick) &&
	    !bmm_get(&forced[job->op]))
		settle(&bmm_served[job->op][class],
		       bmm_pick_backend(pick, job->op));
}

/**
 * bmm_backend_serving() - the backend that would do an operation now
 * @op:  the operation, below BMM_OPS
 * @len: its length in bytes
 *
 * Return: the forced backend, else the one decided on, else the leader so far
 * or the first guess; never NULL.
 */
const struct bmm_backend *bmm_backend_serving(enum bmm_op op, size_t len)
{
	const struct bmm_backend *backend;

	begin();
	backend = bmm_serving(op, len);
	return backend ? backend :
			 bmm_pick_backend(&picks[op][bmm_class(len)], op);
}

/**
 * bmm_backend_select() - force a backend, or have the fastest picked
 * @op:   the operation
 * @name: a name from bmm_backend_list(), not necessarily terminated; "fastest"
 *        discards what was measured and measures again
 * @len:  its length in bytes; 0 means "fastest"
 *
 * Calls in progress finish with the backend they have.
 *
 * Return: 0, or -BMM_EINVAL if there is no such operation, or no such backend
 * for it on this CPU (nothing changes).
 */
int bmm_backend_select(enum bmm_op op, const char *name, size_t len)
{
	const struct bmm_backend *found = NULL;

	begin();
	if ((unsigned int)op >= BMM_OPS)
		return -BMM_EINVAL;
	if (!is_fastest(name, len)) {
		found = bmm_backend_find(op, name, len);
		if (!found)
			return -BMM_EINVAL;
	}
	force(op, found);
	return 0;
}

/**
 * bmm_backend_list() - list the backends, and which one serves
 * @op:   the operation
 * @len:  length of the operations in question: the fastest backend differs by
 *        size
 * @buf:  result, such as "generic [movdir64b=37.8] movnti=36.1": names that are
 *        valid here for @op; GB/s of those measured for operations of about
 *        @len bytes; in brackets the one that serves such an operation now;
 *        terminated, cut to @size - 1 bytes
 * @size: bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole list, without the terminator; 0 if there is
 * no such operation.
 */
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size)
{
	if ((unsigned int)op < BMM_OPS)
		return bmm_pick_list(&picks[op][bmm_class(len)], op,
				     bmm_backend_serving(op, len), buf, size);
	if (size)
		*buf = 0;
	return 0;
}

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

static void add_names(struct bmm_text *text, enum bmm_op op)
{
	const struct bmm_backend *backend;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		if (!bmm_backend_can(backend, op))
			continue;
		bmm_text_add(text, " ");
		bmm_text_add(text, backend->name);
	}
}

/**
 * bmm_environment_error() - what is wrong with the BULKMM_ variables
 * @buf:  result, such as "BULKMM_COPY=movnit: no such backend here: fastest
 *        generic rep-b plain", for the first variable that names no backend of
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
	struct bmm_text text = { .buf = buf, .size = size };
	const char *name;
	int op;

	for (op = 0; op < (int)BMM_OPS && !text.len; op++) {
		name = bmm_host_setting(settings[op]);
		if (is_fastest(name, length_of(name)) ||
		    bmm_backend_find((enum bmm_op)op, name, length_of(name)))
			continue;
		bmm_text_add(&text, settings[op]);
		bmm_text_add(&text, "=");
		add_printable(&text, name);
		bmm_text_add(&text, ": no such backend here: fastest");
		add_names(&text, (enum bmm_op)op);
	}
	bmm_text_end(&text);
	return text.len;
}

/**
 * bmm_version() - the version of libbulkmm
 *
 * Return: the version, such as "0.1.0"; a string that never changes.
 */
const char *bmm_version(void)
{
	return BMM_VERSION;
}
