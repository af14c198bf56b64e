// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls and jumps written into the kernel's text: functions diverted to the
 * harness, the patch sites that the module attaches to, its static calls.
 */
#include <errno.h>
#include <string.h>

#include "native.h"

#define SITES_MAX 16
#define NEAR	  5 /* bytes of a call or jump */
#define CALL	  0xe8
#define JUMP	  0xe9

/* A patch site that the module has registered a trampoline for. */
struct site {
	void *ops;
	char *at;
	char *target; /* NULL: not attached */
};

static struct site sites[SITES_MAX];
static size_t sites_count;

static const char nop[NEAR] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

static void near_write(char *at, unsigned char opcode, const char *to)
{
	int32_t distance = (int32_t)(to - (at + NEAR));

	*(unsigned char *)at = opcode;
	memcpy(at + 1, &distance, sizeof(distance));
}

static char *behind_endbr(char *at)
{
	return memcmp(at, endbr, sizeof(endbr)) ? at : at + sizeof(endbr);
}

/* Redirects the kernel's own calls of a function to one of the harness. */
void divert(const char *name, void *to)
{
	near_write(behind_endbr(symbol(name)), JUMP, to);
}

/*
 * The same, to a function that calls the original, whose address after its
 * patch site is returned.
 */
char *divert_keep(const char *name, void *to)
{
	char *at = behind_endbr(symbol(name));

	if (memcmp(at, nop, NEAR))
		fatal("%s has no patch site", name);
	near_write(at, JUMP, to);
	return at + NEAR;
}

/*
 * Makes the patch sites of all hooks that the module has attached call the
 * trampolines, or not.
 */
void sites_write(bool on)
{
	size_t i;

	for (i = 0; i < sites_count; i++) {
		if (on && sites[i].target)
			near_write(sites[i].at, CALL, sites[i].target);
		else
			memcpy(sites[i].at, nop, NEAR);
	}
}

/* How many are attached. */
size_t sites_nr(void)
{
	size_t i, nr = 0;

	for (i = 0; i < sites_count; i++)
		nr += !!sites[i].target;
	return nr;
}

/* Patch sites are given by their last byte. */
STUB(int, ftrace_set_filter_ip, void *ops, char *last, int remove, int reset)
{
	char *at = last - (NEAR - 1);
	size_t i;

	for (i = 0; i < sites_count; i++)
		if (sites[i].at == at) /* of an earlier module state */
			return 0;
	if (memcmp(at, nop, NEAR))
		return -EINVAL;
	if (sites_count == SITES_MAX)
		return -ENOMEM;
	sites[sites_count++] = (struct site){ .ops = ops, .at = at };
	return 0;
}

static int sites_point(const void *ops, char *target)
{
	size_t i;

	for (i = 0; i < sites_count; i++)
		if (sites[i].ops == ops)
			sites[i].target = target;
	sites_write(true);
	return 0;
}

STUB(int, register_ftrace_direct, void *ops, char *target)
{
	return sites_point(ops, target);
}

STUB(int, unregister_ftrace_direct, void *ops, char *target, bool free_filter)
{
	return sites_point(ops, NULL);
}

/* The names of 6.1 */

STUB_AS(register_ftrace_direct_multi, register_ftrace_direct);
STUB_AS(unregister_ftrace_direct_multi, unregister_ftrace_direct);

STUB(void, __static_call_update, void *key, void *trampoline, void *function)
{
	AT(void *, key, OFFSET("static_call_key.func")) = function;
	near_write(trampoline, JUMP, function);
}
