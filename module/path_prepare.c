// SPDX-License-Identifier: GPL-2.0-only
/*
 * What paths need besides hooks: options, layouts, functions that they call,
 * and a kernel that does not do their work itself.
 */
#include <linux/static_call.h>
#include <linux/string.h>

#include "path_internal.h"
#include "symbols.h"

#define BMM_PATH_CALL(path, name, ...) \
	DEFINE_STATIC_CALL_NULL(bmm_##name, *(bmm_##name##_fn *)NULL);
#include "paths.def"

/* Functions that paths call. */
static const struct {
	const char *path, *symbol, *prototype;
	struct static_call_key *key;
	void *tramp;
} calls[] = {
#define BMM_PATH_CALL(path, name, ...)                        \
	{ #path, bmm_##name##_symbol, bmm_##name##_prototype, \
	  &STATIC_CALL_KEY(bmm_##name), STATIC_CALL_TRAMP_ADDR(bmm_##name) },
#include "paths.def"
};

/* Options that rule a path out, as they are set in this kernel or not. */
static const struct {
	const char *path, *option;
	bool excluded;
} options[] = {
#define BMM_PATH_WITHOUT(path, option) \
	{ #path, "CONFIG_" #option, IS_BUILTIN(CONFIG_##option) },
#define BMM_PATH_WITH(path, option) \
	{ #path, "CONFIG_" #option, !IS_BUILTIN(CONFIG_##option) },
#include "paths.def"
};

/* Functions, and members of structs, of kernels that do a path's work themselves. */
static const struct {
	const char *path, *name;
} replacements[] = {
#define BMM_PATH_WITHOUT_FUNCTION(path, function) { #path, #function },
#define BMM_PATH_WITHOUT_MEMBER(path, type, member) \
	{ #path, #type "." #member },
#include "paths.def"
};

static int path_check_config(const struct bmm_path *path,
			     const char **err_subject)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (!options[i].excluded || strcmp(options[i].path, path->name))
			continue;
		*err_subject = options[i].option;
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Whether the kernel has a function or a member: 1, 0 or a negative errno. */
static int kernel_has(const char *name)
{
	long address;

	if (strchr(name, '.'))
		return bmm_layout_has(name);
	address = bmm_symbol_data(name);
	return !IS_ERR_VALUE(address) || address == -EADDRNOTAVAIL;
}

static int path_check_gain(const struct bmm_path *path, const char **err_subject)
{
	size_t i;
	int has;

	for (i = 0; i < ARRAY_SIZE(replacements); i++) {
		if (strcmp(replacements[i].path, path->name))
			continue;
		*err_subject = replacements[i].name;
		has = kernel_has(replacements[i].name);
		if (has)
			return has < 0 ? has : -EALREADY;
	}
	return 0;
}

static int path_find_calls(const struct bmm_path *path, const char **err_subject)
{
	long entry;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (strcmp(calls[i].path, path->name))
			continue;
		*err_subject = calls[i].symbol;
		entry = bmm_function_entry(calls[i].symbol, calls[i].prototype);
		if (IS_ERR_VALUE(entry))
			return entry;
		__static_call_update(calls[i].key, calls[i].tramp,
				     (void *)entry);
	}
	return 0;
}

/* What the path needs besides hooks, and the symbol, option or member at fault. */
int bmm_path_prepare(const struct bmm_path *path, const char **err_subject)
{
	int err = path_check_config(path, err_subject);

	err = err ?: path_check_gain(path, err_subject);
	err = err ?: bmm_layout_check(path->name, err_subject);
	if (!err && path->prepare) {
		*err_subject = path->prepare_symbol;
		err = path->prepare();
	}
	return err ?: path_find_calls(path, err_subject);
}
