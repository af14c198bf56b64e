// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether a write to a resident private page may fault. After a fork it does,
 * on every page, even when the child is gone; so does one to a page merged by
 * KSM. The kernel does not say so for any page. But if there never was a fork,
 * no page is affected, and that can be tested: a page of our own, allocated
 * before the first fork, takes no fault when written.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "populate.h"

#define FORKED 0x40U /* PF_FORKNOEXEC: forked, and no exec since */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile char *canary; /* NULL: there may have been a fork */
static bool busy;	      /* a thread is checking */
static bool forked;	      /* since the first call */

static void before_fork(void)
{
	__atomic_store_n(&forked, true, __ATOMIC_RELAXED);
}

/* Children that are reaped automatically leave no trace. */
static bool children_are_seen(void)
{
	struct sigaction action;

	return !sigaction(SIGCHLD, NULL, &action) &&
	       action.sa_handler != SIG_IGN &&
	       !(action.sa_flags & SA_NOCLDWAIT);
}

static bool has_children(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ||
	       errno != ECHILD;
}

/* A child that was waited for has left its page faults in our totals. */
static bool had_children(void)
{
	unsigned long minor, major;
	unsigned int flags;
	char text[1024];
	const char *at;

	if (!kernel_text("/proc/self/stat", text, sizeof(text)))
		return true;
	at = strrchr(text, ')'); /* ends the name, which may contain more */
	if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %u %*u %lu %*u %lu",
			  &flags, &minor, &major) != 3)
		return true;
	return flags & FORKED || minor || major;
}

/* Not a huge page: a collapse would replace shared pages by an unshared one. */
static void settle(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	/* Covers forks by the C library, not a clone() that acts as one. */
	pthread_atfork(before_fork, NULL, NULL);
	madvise(p, page, MADV_NOHUGEPAGE);
	*p = 1;
	if (children_are_seen() && !has_children() && !had_children())
		canary = p;
	else
		munmap(p, page);
}

static bool has_merged_pages(void)
{
	char text[32];

	return kernel_text("/proc/self/ksm_merging_pages", text, sizeof(text)) &&
	       strcmp(text, "0\n") != 0;
}

static long faults(void)
{
	struct rusage usage = { 0 }; /* fault it in before the kernel writes */

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Only the first write after a fork faults: remember it. */
static bool look(void)
{
	long before = faults();

	if (!canary)
		return false;
	*canary = 1;
	if (faults() != before)
		canary = NULL;
	return canary;
}

/**
 * forks_none() - whether writes to private pages are certain not to fault
 *
 * This is about resident, writable anonymous memory; the zero page is a
 * different matter.
 *
 * Return: true if certain, else false; UNKNOWN: another thread is checking.
 */
int forks_none(void)
{
	int kept = errno;
	bool none;

	pthread_once(&once, settle);
	if (__atomic_load_n(&forked, __ATOMIC_RELAXED))
		return false;
	if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		return UNKNOWN;
	none = look() && !has_merged_pages();
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	errno = kept;
	return none;
}
