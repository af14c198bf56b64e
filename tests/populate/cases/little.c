// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Little to do, or to do it with: few system calls, no memory, no thread. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

/* One makes calls and needs memory itself, and makes mlockall() do nothing. */
static void needs_no_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	puts("a sanitizer has calls and memory of its own");
	exit(SKIPPED);
#endif
}

/* As struct ptrace_syscall_info, of which <sys/ptrace.h> may have no more. */
struct stopped {
	uint8_t op, more[23];
	uint64_t nr, args[6];
};

#define GET_INFO 0x420e /* PTRACE_GET_SYSCALL_INFO */
#define ENTRY	 1

/* Runs on to the next system call; false: it has ended. */
static bool next_call(pid_t child, struct stopped *stopped)
{
	int status;

	do {
		if (ptrace(PTRACE_SYSCALL, child, 0, 0) ||
		    waitpid(child, &status, 0) != child || WIFEXITED(status))
			return false;
		if (ptrace(GET_INFO, child, sizeof(*stopped), stopped) < 0)
			exit(SKIPPED);
	} while (stopped->op != ENTRY);
	return true;
}

/* System calls that a first call makes until it populates. */
static unsigned int calls_before(size_t len)
{
	struct stopped stopped = { 0 };
	bool populates = false;
	char *p = anonymous(len);
	unsigned int calls = 0;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		syscall(SYS_getppid);
		_exit(bmm_populate(p, len, NULL, NULL));
	}
	waitpid(child, NULL, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD);
	while (next_call(child, &stopped) && stopped.nr != SYS_getppid)
		;
	while (!populates && next_call(child, &stopped)) {
		populates = stopped.nr == SYS_madvise &&
			    stopped.args[0] > PAGE &&
			    stopped.args[2] == POPULATE;
		calls += !populates;
	}
	check(populates);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(p, len);
	return calls;
}

/* On a machine of one node: each of several is asked for. */
CASE(few_calls, HERE)
{
	needs_no_sanitizer();
	check(calls_before(PAGE) <= 1);
	check(calls_before(63 * MIB) <= 2);
	check(nodes_several() || calls_before(LEN) <= 12);
}

/* The kernel's call needs no memory but that of the pages. */
static void with_no_more(void)
{
	static const size_t lens[] = { PAGE, 4 * MIB, LEN };
	struct bmm_options seen = OPTIONS(.flags = BMM_ON_NODE);
	struct rlimit none = { 1, 1 };
	char *p[3];
	size_t i;

	needs_no_sanitizer();
	for (i = 0; i < 3; i++)
		p[i] = anonymous(lens[i]);
	setrlimit(RLIMIT_AS, &none);
	for (i = 0; i < 3; i++) {
		all_of(p[i], lens[i], NULL);
		madvise(p[i], lens[i], MADV_DONTNEED);
		all_of(p[i], lens[i], &seen);
		check(is_there(p[i], lens[i]));
	}
}

CASE(no_address_space, HERE | TOUCHED)
{
	with_no_more();
}

static void *on_a_node(void *arg)
{
	struct bmm_options alone = OPTIONS(.threads = 1);

	check(!bmm_populate(arg, LEN, &alone, NULL));
	check(!bmm_populate(arg, LEN, NULL, NULL));
	return NULL;
}

/* By a thread with as little stack as a program's may have. */
static void run_on_little_stack(void *(*run)(void *), char *p)
{
	size_t tls = sizeof(much);
	pthread_attr_t least;
	pthread_t thread;

	nodes_made = true; /* where it runs is found out */
	pthread_attr_init(&least);
	pthread_attr_setstacksize(&least, (size_t)PTHREAD_STACK_MIN + tls);
	check(!__real_pthread_create(&thread, &least, run, p));
	pthread_join(thread, NULL);
}

CASE(little_stack_on_a_node, HERE)
{
	needs_no_sanitizer();
	run_on_little_stack(on_a_node, anonymous(LEN));
}

static void *give_up_huge(void *arg)
{
	struct bmm_options alone = OPTIONS(.threads = 1);
	struct bmm_report report = all_of(arg, LEN, &alone);

	check(report.small);
	return NULL;
}

CASE(little_stack_gives_up_huge, HERE | MAPS)
{
	size_t len = 2 * LEN;
	char *p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	needs_no_sanitizer();
	if (madvise(p, len, MADV_HUGEPAGE) ||
	    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		exit(SKIPPED);
	compaction_made = 1000;
	run_on_little_stack(give_up_huge, p);
}

/* As in a program that locks all that it will ever map. */
CASE(no_more_to_be_locked, HERE)
{
	struct rlimit little = { 256 << 10, 256 << 10 };
	char *p = anonymous(LEN);

	needs_no_sanitizer();
	if (setrlimit(RLIMIT_MEMLOCK, &little) ||
	    (!getuid() && setresuid(65534, 65534, 65534)) ||
	    mlockall(MCL_FUTURE | MCL_ONFAULT)) {
		puts("no limit of locked memory");
		exit(SKIPPED);
	}
	while (try_anonymous(PAGE, 0) != MAP_FAILED)
		;
	check(errno == EAGAIN);
	all_of(p, LEN, NULL);
	check(is_there(p, LEN));
}

static char *mapped;

static void populate_in_handler(int number)
{
	(void)number;
	created = 0;
	all_of(mapped, LEN, NULL);
}

/*
 * It may have interrupted malloc(), which starting a thread calls. A signal
 * that is blocked does not yet tell: threads block what others handle.
 */
CASE(in_a_signal_handler, HERE)
{
	struct sigaction action = { .sa_handler = populate_in_handler };
	static char room[256 << 10];
	stack_t other = { .ss_sp = room, .ss_size = sizeof(room) };
	sigset_t set;

	cpus_made = 4;
	mapped = anonymous(LEN);
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	all_of(mapped, LEN, NULL);
	check(created);
	madvise(mapped, LEN, MADV_DONTNEED);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(SIGUSR1);
	check(!created && is_there(mapped, LEN));
	madvise(mapped, LEN, MADV_DONTNEED);
	check(!sigaltstack(&other, NULL));
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	check(!created && is_there(mapped, LEN));
}
