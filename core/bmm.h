/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* bmm.h - what stands behind bulkmm.h: backends, and which one serves */
#ifndef BMM_H
#define BMM_H

#include "bmm_host.h"
#include "bulkmm.h"

#define BMM_CACHED  1U /* backend leaves what it writes in the cache */
#define BMM_LENGTHY 2U /* on some CPUs far faster in parts of many MiB */

/**
 * struct bmm_backend - one way to issue the stores
 * @name:            what a user types to force it
 * @flags:           BMM_CACHED and BMM_LENGTHY, where they hold
 * @supported:       whether this CPU has it; may be slow (CPUID)
 * @stamp:           as bmm_stamp(), arguments already checked
 * @copy:            as bmm_copy_streaming()
 * @clear:           as bmm_clear()
 * @clear_streaming: as bmm_clear_streaming(), but for the drain
 * @drain:           makes the stores of this backend visible; empty where
 *                   they are ordinary
 *
 * An operation that a backend does not have is NULL.
 */
struct bmm_backend {
	const char *name;
	unsigned int flags;
	bool (*supported)(void);
	void (*stamp)(void *dst, const struct bmm_image *image, size_t count);
	void (*copy)(void *dst, const void *src, size_t len);
	void (*clear)(void *dst, size_t len);
	void (*clear_streaming)(void *dst, size_t len);
	void (*drain)(void);
};

/* Every backend built for this architecture, slowest to fastest guess. */
extern const struct bmm_backend *const bmm_backends[];
extern const size_t bmm_backends_nr;

bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op);
const struct bmm_backend *bmm_backend_find(enum bmm_op op, const char *name,
					   size_t len);
const struct bmm_backend *bmm_backend_default(enum bmm_op op);

#endif
