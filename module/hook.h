/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_HOOK_H
#define BMM_HOOK_H

#include <linux/ftrace.h>

#define BMM_HOOK_PASS ULONG_MAX /* no request is this large */

/**
 * struct bmm_hook - one hooked kernel function
 * @symbol:       its name
 * @trampoline:   assembly entry (trampolines.S)
 * @threshold:    requests of this size and above go to the handler, smaller
 *                ones straight into the original body; BMM_HOOK_PASS sends
 *                all to the original. The trampoline reads it.
 * @on_from:      the threshold while the path is on
 * @first_mode:   first mode of the path that has a use for the hook
 * @off_from:     the same while off: BMM_HOOK_PASS, or 0 where requests are so
 *                rare that even fallbacks are counted
 * @set_original: points the static call to the original at an address
 * @try:          shows that calls reach the handler, where a compiler may have
 *                inlined some; 0 or a negative errno; NULL: no doubt
 * @ops:          the ftrace registration
 * @state:        0 while attached, else the negative errno of the last try
 *                (-ENODEV before the first)
 * @about:        the symbol that the state is about
 */
struct bmm_hook {
	const char *symbol;
	void (*trampoline)(void);
	unsigned long *threshold;
	unsigned long on_from;
	int first_mode;
	unsigned long off_from;
	void (*set_original)(unsigned long address);
	int (*try)(void);
	struct ftrace_ops ops;
	int state;
	const char *about;
};

int bmm_hook_attach(struct bmm_hook *hook);
void bmm_hook_detach(struct bmm_hook *hook);
const char *bmm_hook_why(int state);

#endif
