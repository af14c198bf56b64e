// SPDX-License-Identifier: GPL-2.0-only
/* Faults in the code that runs: reported and final, except for its WARNs. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "native.h"

/* What is running, for the report of a fault. */
char current_step[STEP_MAX];

#define BUGFLAG_WARNING 1
#define UD2		2 /* its length in bytes */
#define ILLEGAL \
	" (a BUG or WARN, or an instruction that this CPU does not have)"

/* A WARN is an undefined instruction that the kernel's bug table lists. */
static bool is_warning(uint64_t address)
{
	const size_t size = SIZE("bug_entry");
	char *entry = symbol("__start___bug_table");
	char *end = symbol("__stop___bug_table");

	for (; entry < end; entry += size)
		if ((uint64_t)(entry + AT(int32_t, entry, 0)) == address)
			return AT(uint16_t, entry, OFFSET("bug_entry.flags")) &
			       BUGFLAG_WARNING;
	return false;
}

static unsigned int warnings;
static bool goes_on;

/* From now on, execution continues after a WARN, as in the kernel. */
void faults_count_warnings(void)
{
	goes_on = true;
}

/* How many there were since the last call. */
unsigned int faults_warnings(void)
{
	unsigned int nr = warnings;

	warnings = 0;
	return nr;
}

/*
 * Nothing here can repair the code that runs: say where, and end. Functions of
 * libc that need no stack begin it with their caller, who is the one to blame.
 */
static void fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	greg_t *at = &c->uc_mcontext.gregs[REG_RIP];
	char where[256], from[256];

	if (goes_on && number == SIGILL && is_warning((uint64_t)*at)) {
		warnings++;
		*at += UD2;
		return;
	}
	symbol_describe((uint64_t)*at, where, sizeof(where));
	symbol_describe(*(uint64_t *)c->uc_mcontext.gregs[REG_RSP], from,
			sizeof(from));
	dprintf(STDERR_FILENO, "SIG%s%s in %s%s, address %p%s, stack: %s%s%s\n",
		sigabbrev_np(number), number == SIGILL ? ILLEGAL : "", where,
		side_now() ? " of the kernel to compare with" : "",
		info->si_addr,
		info->si_code == SI_KERNEL ? " (not canonical, or misaligned)" :
					     "",
		from, current_step[0] ? ", case: " : "", current_step);
	_exit(ENVIRONMENT);
}

/* Reports faults, on a separate signal stack. */
void faults_catch(void)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP };
	stack_t stack = { .ss_sp = require_memory(65536), .ss_size = 65536 };
	struct sigaction action = {
		.sa_sigaction = fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};
	size_t i;

	sigaltstack(&stack, NULL);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}
