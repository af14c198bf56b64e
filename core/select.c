// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a user says about backends: force one, choose again, list them. */
#include "turn.h"

static const char fastest[] = "fastest";

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

/**
 * bmm_backend_select() - force a backend, or let bulkmm choose
 * @op:   the operation
 * @name: one of those bmm_backend_list() lists, not necessarily terminated;
 *        "fastest" forgets what was measured and chooses anew
 * @len:  its length in bytes; 0 is as "fastest"
 *
 * Calls under way finish as they began.
 *
 * Return: 0, or -BMM_EINVAL if there is no such operation, or no such backend
 * for it on this CPU (nothing changes).
 */
int bmm_backend_select(enum bmm_op op, const char *name, size_t len)
{
	const struct bmm_backend *found = NULL;

	if ((unsigned int)op >= BMM_OPS)
		return -BMM_EINVAL;
	if (is_fastest(name, len)) {
		bmm_turn_forget(op);
	} else {
		found = bmm_backend_find(op, name, len);
		if (!found)
			return -BMM_EINVAL;
	}
	__atomic_store_n(&bmm_quick[op].forced, found, __ATOMIC_RELAXED);
	return 0;
}

struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *text, const char *s)
{
	for (; *s; s++, text->len++)
		if (text->len + 1 < text->size)
			text->buf[text->len] = *s;
}

static void add_backend(struct text *text, const struct bmm_backend *backend,
			bool serves)
{
	if (text->len)
		add(text, " ");
	if (serves)
		add(text, "[");
	add(text, backend->name);
	if (serves)
		add(text, "]");
}

/**
 * bmm_backend_list() - the backends there are, and which one serves
 * @op:   the operation
 * @len:  bytes of the operations that are asked about: the fastest backend
 *        differs by length
 * @buf:  result, such as "generic plain [movnti]": names that are valid here
 *        for @op, in brackets the one that serves an operation of @len bytes
 *        now; terminated, cut to @size - 1 bytes
 * @size: bytes of @buf; 0 writes nothing, and @buf may then be NULL
 *
 * Return: the length of the whole list, without the terminator; 0 if there is
 * no such operation.
 */
size_t bmm_backend_list(enum bmm_op op, size_t len, char *buf, size_t size)
{
	struct text text = { .buf = buf, .size = size };
	const struct bmm_backend *serving;
	size_t i;

	if ((unsigned int)op < BMM_OPS) {
		serving = bmm_backend_serving(op, len, -1);
		for (i = 0; i < bmm_backends_nr; i++)
			if (bmm_backend_can(bmm_backends[i], op))
				add_backend(&text, bmm_backends[i],
					    bmm_backends[i] == serving);
	}
	if (size)
		buf[text.len < size ? text.len : size - 1] = 0;
	return text.len;
}
