// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which cache lines bmm_persist() writes back: a child calls it, stopped after
 * each instruction. Every line of the range must be written back exactly once,
 * and a fence must follow. No emulated persistent memory shows a line that was
 * left out, since an emulator's caches never lose anything.
 *
 *	persisted clwb|clflushopt|clflush    as on a CPU with no better one
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bmm_host.h"
#include "bulkmm.h"

#define LINE  64U
#define LINES 12U
#define CASES 200

static const char *const names[] = { "clflush", "clflushopt", "clwb" };
static const unsigned char first_bytes[][4] = { "\x0f\xae", "\x66\x0f\xae",
						"\x66\x0f\xae" };
static const unsigned int digits[] = { 7, 7, 6 }; /* of ModRM */
static unsigned int kind;
static char memory[(LINES + 2) * LINE] __attribute__((__aligned__(64)));

/* The linker calls this instead of lib/cpu.c (--wrap). */
bool __real_bmm_host_has(enum bmm_cpu feature);
bool __wrap_bmm_host_has(enum bmm_cpu feature);

bool __wrap_bmm_host_has(enum bmm_cpu feature)
{
	return feature == BMM_CPU_CLWB	     ? kind == 2 :
	       feature == BMM_CPU_CLFLUSHOPT ? kind == 1 :
					       __real_bmm_host_has(feature);
}

/* The range of a case: its offset in memory[]; every fourth one is short. */
static size_t range(unsigned int nth, size_t *len)
{
	srand(nth);
	*len = (unsigned int)rand() % (nth % 4 ? (LINES - 2) * LINE : LINE + 1);
	return LINE + (unsigned int)rand() % (2 * LINE);
}

static void call(unsigned int nth)
{
	size_t len, at = range(nth, &len);

	raise(SIGSTOP);
	if (bmm_persist(memory + at, len))
		_exit(1);
	raise(SIGSTOP);
}

static void child(void)
{
	unsigned int nth;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	for (nth = 0; nth < CASES; nth++)
		call(nth);
	_exit(0);
}

static unsigned long long operand(const struct user_regs_struct *regs,
				  unsigned int modrm)
{
	const unsigned long long base[] = { regs->rax, regs->rcx, regs->rdx,
					    regs->rbx, 0,	  0,
					    regs->rsi, regs->rdi };

	return modrm < LINE ? base[modrm & 7] : 0; /* no displacement */
}

/* The child was forked: its code and its memory have the same addresses. */
static void look(const struct user_regs_struct *regs, unsigned int *times,
		 bool *fenced)
{
	const unsigned char *code = (const unsigned char *)regs->rip;
	size_t prefix = strlen((const char *)first_bytes[kind]), line;

	if (!memcmp(code, "\x0f\xae\xf8", 3))
		*fenced = true;
	if (memcmp(code, first_bytes[kind], prefix) ||
	    (code[prefix] >> 3 & 7) != digits[kind] || code[prefix] >= 0xc0)
		return;
	line = (operand(regs, code[prefix]) - (uintptr_t)memory) / LINE;
	if (line < LINES + 2)
		times[line]++;
	*fenced = false;
}

static int stopped(pid_t pid, int request)
{
	int status = 0;

	if (ptrace(request, pid, NULL, NULL) || waitpid(pid, &status, 0) < 0)
		exit(3);
	if (WIFEXITED(status))
		exit(4);
	return WSTOPSIG(status);
}

static int watch(pid_t pid, unsigned int nth)
{
	unsigned int times[LINES + 2] = { 0 }, line, wanted;
	struct user_regs_struct regs;
	size_t len, at = range(nth, &len);
	bool fenced = false;
	int wrong = 0;

	do {
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		look(&regs, times, &fenced);
	} while (stopped(pid, PTRACE_SINGLESTEP) == SIGTRAP);
	for (line = 0; line < LINES + 2; line++) {
		wanted = len && (line + 1) * LINE > at && line * LINE < at + len;
		if (times[line] != wanted)
			wrong++;
	}
	if (wrong || !fenced)
		printf("%zu bytes at %zu: %d lines wrong, %s fence\n", len,
		       at % LINE, wrong, fenced ? "a" : "no");
	return wrong || !fenced;
}

int main(int argc, char **argv)
{
	unsigned int nth, wrong = 0;
	int status;
	pid_t pid;

	for (kind = 2; kind && (argc < 2 || strcmp(argv[1], names[kind]));)
		kind--;
	pid = fork();
	if (!pid)
		child();
	for (nth = 0; nth < CASES; nth++) {
		if (!nth)
			waitpid(pid, &status, 0);
		else if (stopped(pid, PTRACE_CONT) != SIGSTOP)
			return 3;
		wrong += (unsigned int)watch(pid, nth);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("%s: %d ranges, %u wrong\n", names[kind], CASES, wrong);
	return wrong != 0;
}
