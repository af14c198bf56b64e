// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The table of backends, and which of them is in force. */
#include "backends.h"

const struct bmm_backend *const bmm_backends[] = {
	&bmm_generic,
#ifdef __x86_64__
	&bmm_x86_plain,
	&bmm_x86_movnti,
#endif
};

const size_t bmm_backends_nr = sizeof(bmm_backends) / sizeof(bmm_backends[0]);

/* NULL: no name forced. One pointer, so that it can change under a reader. */
static const struct bmm_backend *forced;

static bool same_name(const char *backend, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!backend[i] || backend[i] != name[i])
			return false;
	return !backend[len];
}

/**
 * bmm_backend_find() - look a backend up by name
 * @name: name, not necessarily terminated
 * @len:  its length in bytes
 *
 * Return: the backend, or NULL if no backend of this name is built in or this
 * CPU does not have it.
 */
const struct bmm_backend *bmm_backend_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < bmm_backends_nr; i++)
		if (same_name(bmm_backends[i]->name, name, len))
			return bmm_backends[i]->supported() ? bmm_backends[i] :
							      NULL;
	return NULL;
}

/**
 * bmm_backend_default() - the fastest guess this CPU supports
 *
 * Return: a backend, never NULL (generic is supported everywhere).
 */
const struct bmm_backend *bmm_backend_default(void)
{
	size_t i = bmm_backends_nr;

	while (--i)
		if (bmm_backends[i]->supported())
			break;
	return bmm_backends[i];
}

/**
 * bmm_backend() - the backend in force: the selected one, else the default
 *
 * A caller that drains later keeps this pointer: the selection may change
 * between its stores and its drain.
 *
 * Return: a backend, never NULL.
 */
const struct bmm_backend *bmm_backend(void)
{
	const struct bmm_backend *chosen = __atomic_load_n(&forced,
							   __ATOMIC_RELAXED);

	return chosen ? chosen : bmm_backend_default();
}

/**
 * bmm_backend_select() - force a backend by name
 * @name: one of the names in bmm_backends, not necessarily terminated
 * @len:  its length in bytes; 0 goes back to the default
 *
 * Return: 0, or -BMM_EINVAL if there is no such backend here (the one in force
 * stays).
 */
int bmm_backend_select(const char *name, size_t len)
{
	const struct bmm_backend *found = NULL;

	if (len) {
		found = bmm_backend_find(name, len);
		if (!found)
			return -BMM_EINVAL;
	}
	__atomic_store_n(&forced, found, __ATOMIC_RELAXED);
	return 0;
}
