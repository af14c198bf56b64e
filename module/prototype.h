/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_PROTOTYPE_H
#define BMM_PROTOTYPE_H

#include <linux/compiler.h>

/*
 * A kernel function: the type NAME_fn that calls of it are compiled with, and
 * the same as text, NAME_prototype, which is compared with the running kernel's
 * BTF. Parameters have no names.
 */
#define BMM_FUNCTION(name, ret, ...)                               \
	typedef ret name##_fn(__VA_ARGS__);                        \
	static const char name##_prototype[] __maybe_unused = #ret \
		"(" #__VA_ARGS__ ")"

long bmm_function_entry(const char *symbol, const char *prototype);
void bmm_prototype_done(void);

#endif
