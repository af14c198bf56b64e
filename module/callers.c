// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who calls a hooked function: a path attaches only if they are those that they
 * are on a kernel that was tried.
 *
 * A kernel may keep a function's name and prototype, and call it elsewhere or
 * for another purpose; or its compiler inlines the function into some callers,
 * whose calls a hook then misses. Neither shows in its symbols or BTF. Its text
 * does, as a direct call names its target; callers.def has what kernels that
 * were tried have.
 *
 * Counted are direct calls and jumps in the kernel's own text, as it is now.
 * Indirect ones are not, nor modules, nor what ran before boot had ended. A
 * call that somebody has a kprobe on is missing; then the path is off, until it
 * is switched on without.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "callers.h"
#include "faults.h"
#include "symbols.h"
#ifdef CONFIG_ARM64
#include "arm64/calls.h"
#else
#include "x86/calls.h"
#endif

#ifndef callers_print /* tests have symbols of their own */
#define callers_print snprintf
#endif

#define NAME 64		    /* bytes of a caller's name that are looked at */
#define CALL (2 * NAME + 2) /* of "CALLER->FUNCTION" */

/* The functions that paths hook. */
static struct callee {
	const char *function;
	unsigned long entry; /* 0: the kernel has none */
	int err;
	char subject[CALL]; /* of the error */
} callees[] = {
#define BMM_PATH_HOOK(path, name, function, ...) { #function },
#include "paths.def"
};

/* Their callers on kernels that were tried. */
static const struct {
	const char *function, *callers;
} tried[] = {
#define BMM_CALLERS(function, callers, kernels) { #function, callers },
#include "callers.def"
};

/* What the text has of a row of these. */
struct match {
	unsigned int strangers; /* calls by others */
	char stranger[NAME];	/* the first of them */
	unsigned long bits;	/* a bit for each of its callers */
};

/* The results stand until bmm_callers_done() finds one that is bad. */
static bool is_current;

/* Where a name is in a list, or -1. */
static int callers_index(const char *list, const char *name)
{
	size_t length = strlen(name), word;
	int i;

	for (i = 0; *list; i++, list += word + (list[word] == ' ')) {
		word = strcspn(list, " ");
		if (word == length && !memcmp(list, name, length))
			return i;
	}
	return -1;
}

/* The function that an address is in, without what the compiler appends. */
static void callers_name(unsigned long at, char name[NAME])
{
	callers_print(name, NAME, "%ps", (void *)at);
	name[strcspn(name, ".$ ")] = '\0';
}

/* Adds a call to all rows of its function. */
static void callers_add(struct match *matches, const struct callee *callee,
			const u8 *at)
{
	char buffer[NAME], call[CALL];
	const char *name = buffer, *as;
	size_t i;
	int index;

	callers_name((unsigned long)at, buffer);
	scnprintf(call, CALL, "%s->%s", name, callee->function);
	as = bmm_fault_symbol(call);
	if (!as || !strcmp(name, callee->function))
		return;
	if (as != call)
		name = as;
	for (i = 0; i < ARRAY_SIZE(tried); i++) {
		if (strcmp(tried[i].function, callee->function))
			continue;
		index = callers_index(tried[i].callers, name);
		if (index >= 0)
			matches[i].bits |= BIT(index);
		else if (!matches[i].strangers++)
			strscpy(matches[i].stranger, name, NAME);
	}
}

/* Adds the call at @at, if it is one of a hooked function. */
static void callers_look(struct match *matches, const u8 *at)
{
	unsigned long target = bmm_call_target(at);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(callees); i++)
		if (callees[i].entry - target <= bmm_call_padding())
			callers_add(matches, &callees[i], at);
}

/* Looks at each call from @at on that leads to where hooked functions are. */
static void callers_scan(struct match *matches, const u8 *at, const u8 *end)
{
	unsigned long first = ULONG_MAX, last = 0, target;
	const u8 *stop = at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(callees); i++) {
		if (!callees[i].entry)
			continue;
		first = min(first, callees[i].entry - bmm_call_padding());
		last = max(last, callees[i].entry);
	}
	while ((at = bmm_call_find(at, end)) < end) {
		target = bmm_call_target(at);
		if (target >= first && target <= last)
			callers_look(matches, at);
		at += BMM_CALL_STEP;
		if (at < stop)
			continue;
		cond_resched();
		stop = at + SZ_64K;
	}
}

/* How many callers differ from a row. */
static unsigned int callers_differences(const struct match *match,
					const char *list)
{
	unsigned int nr = !!*list;

	while ((list = strchr(list, ' '))) {
		list++;
		nr++;
	}
	return match->strangers + nr - hweight_long(match->bits);
}

/* The call that no kernel has, or else the first that they have. */
static void callers_describe(struct callee *callee, const struct match *match,
			     const char *list)
{
	unsigned long bits = match->bits;

	callee->err = match->strangers ? -EREMCHG : -ENOLINK;
	if (match->strangers)
		list = match->stranger;
	else
		for (; bits & 1; bits >>= 1)
			list = strchr(list, ' ') + 1;
	scnprintf(callee->subject, CALL, "%.*s->%s", (int)strcspn(list, " "),
		  list, callee->function);
}

/* Compares a function with the row that it differs least from. */
static void callers_judge(const struct match *matches, struct callee *callee)
{
	static const struct match no_row = { .strangers = 1, .stranger = "?" };
	const struct match *nearest = &no_row;
	unsigned int differences, least = UINT_MAX;
	const char *list = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tried); i++) {
		if (strcmp(tried[i].function, callee->function))
			continue;
		differences = callers_differences(&matches[i], tried[i].callers);
		if (differences >= least)
			continue;
		least = differences;
		nearest = &matches[i];
		list = tried[i].callers;
	}
	callee->err = 0;
	if (least) /* a hook may point to what it is described by */
		callers_describe(callee, nearest, list);
}

/* Counts the calls of all hooked functions, in some 10 ms. */
static int callers_count(void)
{
	long start = bmm_symbol_data("_stext"), end = bmm_symbol_data("_etext");
	struct match *matches;
	long entry;
	size_t i;

	if (IS_ERR_VALUE(start) || IS_ERR_VALUE(end))
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(callees); i++) {
		entry = bmm_symbol_entry(callees[i].function);
		callees[i].entry = IS_ERR_VALUE(entry) ? 0 : entry;
	}
	matches = kcalloc(ARRAY_SIZE(tried), sizeof(*matches), GFP_KERNEL);
	if (!matches)
		return -ENOMEM;
	callers_scan(matches, (const u8 *)start,
		     (const u8 *)end - BMM_CALL_SIZE + 1);
	for (i = 0; i < ARRAY_SIZE(callees); i++)
		callers_judge(matches, &callees[i]);
	kfree(matches);
	is_current = true;
	return 0;
}

/*
 * Whether a hooked function's callers are those that it has on a kernel that
 * was tried: 0, also if the kernel has no such function; -EREMCHG: it has a
 * call that none has; -ENOLINK: it lacks one that they have; @err_subject is
 * that call; or another negative errno. May sleep; callers serialise.
 */
int bmm_callers_check(const char *function, const char **err_subject)
{
	int err = is_current ? 0 : callers_count();
	size_t i;

	for (i = 0; !err && i < ARRAY_SIZE(callees); i++) {
		if (strcmp(callees[i].function, function) || !callees[i].entry)
			continue;
		err = callees[i].err;
		if (err)
			*err_subject = callees[i].subject;
	}
	return err;
}

/* Forgets a result that is bad: the next check counts again. */
void bmm_callers_done(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(callees); i++)
		is_current &= !callees[i].entry || !callees[i].err;
}
