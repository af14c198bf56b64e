/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_HOOK_H
#define BMM_HOOK_H

#include <linux/ftrace.h>

#define BMM_HOOK_PASS ULONG_MAX /* no request is this large */

/*
 * The life of a hook. Unless detached, it holds a reference to the module:
 * calls may be on their way into its text.
 */
enum bmm_hook_life {
	BMM_DETACHED,
	BMM_ATTACHED,
	BMM_DETACHING, /* ftrace has released it, calls may be inside */
	BMM_LEAVING,   /* the same, and somebody waits for them */
	BMM_FOR_GOOD,  /* attached, and ftrace can no longer detach it */
};

/**
 * struct bmm_hook - one hooked kernel function
 * @symbol:       its name
 * @prototype:    what its handler is compiled for (BMM_FUNCTION())
 * @trampoline:   assembly entry (trampolines.S)
 * @threshold:    requests of this size and above go to the handler, smaller
 *                ones straight into the original body; BMM_HOOK_PASS sends
 *                all to the original. Read by the trampoline.
 * @on_from:      the threshold while the path is on
 * @first_mode:   first mode of the path that uses the hook
 * @set_original: points the static call to the original at an address
 * @try:          proves that calls reach the handler, if the compiler may have
 *                inlined some; 0 or a negative errno; NULL: not needed
 * @ops:          the ftrace registration
 * @site:         the address that ftrace patches
 * @life:         enum bmm_hook_life
 * @why:          why it is detached: the negative errno of the last attempt
 *                (-ENODEV: none since it was detached)
 * @about:        the symbol that @why is about
 */
struct bmm_hook {
	const char *symbol;
	const char *prototype;
	void (*trampoline)(void);
	unsigned long *threshold;
	unsigned long on_from;
	int first_mode;
	void (*set_original)(unsigned long address);
	int (*try)(void);
	struct ftrace_ops ops;
	unsigned long site;
	int life;
	int why;
	const char *about;
};

static inline bool bmm_hook_attached(const struct bmm_hook *hook)
{
	int life = READ_ONCE(hook->life);

	return life == BMM_ATTACHED || life == BMM_FOR_GOOD;
}

int bmm_hook_attach(struct bmm_hook *hook);
bool bmm_hook_hide(struct bmm_hook *hook);
int bmm_hook_detach(struct bmm_hook *hook);
bool bmm_hook_leaving(struct bmm_hook *hook);
void bmm_hook_detached(struct bmm_hook *hook);
int bmm_hook_state(const struct bmm_hook *hook);
const char *bmm_hook_why(int state);
const char *bmm_hook_says(const struct bmm_hook *hook);

#endif
