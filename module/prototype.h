/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_PROTOTYPE_H
#define BMM_PROTOTYPE_H

#include <linux/mm.h>
#include <linux/static_call.h>

struct hstate;
struct mhp_params;
struct vm_struct;
struct vmem_altmap;

/*
 * For each kernel function of paths.def: its name, the type that calls of it
 * are compiled with, and the same as text, which is compared with the running
 * kernel's BTF.
 */
#define BMM_FUNCTION(path, name, function, ret, ...)                        \
	typedef ret bmm_##name##_fn(__VA_ARGS__);                           \
	static const char bmm_##name##_symbol[] __maybe_unused = #function; \
	static const char bmm_##name##_prototype[] __maybe_unused = #ret    \
		"(" #__VA_ARGS__ ")";
#define BMM_PATH_HOOK BMM_FUNCTION
#define BMM_PATH_CALL BMM_FUNCTION
#include "paths.def"

/*
 * A hook's assembly entry, bmm_NAME_trampoline (trampolines.S), sends requests
 * of bmm_NAME_threshold and above to bmm_NAME_handler, which calls the original
 * by static_call(bmm_NAME_original). A function that is only called is
 * static_call(bmm_NAME).
 */
#define BMM_PATH_HOOK(path, name, ...)               \
	bmm_##name##_fn bmm_##name##_handler;        \
	void bmm_##name##_trampoline(void);          \
	extern unsigned long bmm_##name##_threshold; \
	DECLARE_STATIC_CALL(bmm_##name##_original, *(bmm_##name##_fn *)NULL);
#define BMM_PATH_CALL(path, name, ...) \
	DECLARE_STATIC_CALL(bmm_##name, *(bmm_##name##_fn *)NULL);
#include "paths.def"

long bmm_function_entry(const char *symbol, const char *prototype);
int bmm_layout_check(const char *path, const char **err_subject);
int bmm_layout_has(const char *name);
void bmm_prototype_done(void);

#endif
