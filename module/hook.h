/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_HOOK_H
#define BMM_HOOK_H

#include <linux/ftrace.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

#include "prototype.h"

struct bmm_path;

#define BMM_HOOK_PASS ULONG_MAX /* no request is this large */

/*
 * The state of a hook. Unless detached, it holds a reference to the module:
 * calls may be on their way into its text.
 */
enum bmm_hook_state {
	BMM_DETACHED,
	BMM_ATTACHED,
	BMM_DETACHING, /* calls pass through; a work item detaches it */
	BMM_STUCK,     /* ftrace can no longer detach it; calls may reach it */
};

/**
 * struct bmm_hook - one hooked kernel function
 * @symbol:       its name
 * @prototype:    what its handler is compiled for
 * @trampoline:   assembly entry (trampolines.S)
 * @threshold:    requests of this size and above go to the handler, smaller
 *                ones straight into the original body; BMM_HOOK_PASS sends
 *                all to the original. Read by the trampoline.
 * @on_from:      the threshold while the path is on
 * @first_mode:   first mode of the path that uses the hook
 * @original:     key of the static call to the original body
 * @original_tramp: its trampoline, where the architecture has static calls
 * @probe:        proves that calls reach the handler, which all do meanwhile, if
 *                the compiler may have inlined some; 0 or a negative errno; NULL:
 *                not needed
 * @path:         to which it belongs
 * @detach:       takes it off its function, and waits for its last calls
 * @ops:          the ftrace registration
 * @site:         the address that ftrace patches
 * @state:        enum bmm_hook_state
 * @err:          why it is detached or detaching: the negative errno of the
 *                last attempt (-ENODEV: none since it was switched off)
 * @err_subject:  the symbol, option or member of a struct that @err is about
 */
struct bmm_hook {
	const char *symbol;
	const char *prototype;
	void (*trampoline)(void);
	unsigned long *threshold;
	unsigned long on_from;
	int first_mode;
	struct static_call_key *original;
	void *original_tramp;
	int (*probe)(void);
	struct bmm_path *path;
	struct work_struct detach;
	struct ftrace_ops ops;
	unsigned long site;
	int state;
	int err;
	const char *err_subject;
};

/* The members of a struct bmm_hook that follow from its name in paths.def. */
#define BMM_HOOK(name)                                                      \
	.symbol = bmm_##name##_symbol, .prototype = bmm_##name##_prototype, \
	.trampoline = bmm_##name##_trampoline,                              \
	.threshold = &bmm_##name##_threshold,                               \
	.original = &STATIC_CALL_KEY(bmm_##name##_original),                \
	.original_tramp = STATIC_CALL_TRAMP_ADDR(bmm_##name##_original)

static inline bool bmm_hook_attached(const struct bmm_hook *hook)
{
	int state = READ_ONCE(hook->state);

	return state == BMM_ATTACHED || state == BMM_STUCK;
}

int bmm_hook_attach(struct bmm_hook *hook);
void bmm_hook_detach(struct bmm_hook *hook, int err);
void bmm_hook_unregister(struct bmm_hook *hook);
void bmm_hook_release(struct bmm_hook *hook);
int bmm_hook_status(const struct bmm_hook *hook);
const char *bmm_hook_strerror(int err);
const char *bmm_hook_text(const struct bmm_hook *hook);

#endif
