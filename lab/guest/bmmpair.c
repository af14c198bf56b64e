// SPDX-License-Identifier: GPL-2.0-only
/*
 * bmmpair ROUNDS FOLIOS KIB - two processes, each on a CPU of its own, fault
 * FOLIOS folios in at once. What each retires meanwhile is counted in its own
 * slot (mark.h); one line per round: ns of both.
 */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"
#include "measure.h"

#define PAIR 2

static struct shared {
	unsigned int ready, done;
	uint64_t begun[PAIR], ended[PAIR];
} *shared;

/* A barrier without a system call: waits until both arrived in this round. */
static void meet(unsigned int *count, unsigned int round)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < PAIR * (round + 1))
		;
}

static void touch(volatile char *at, unsigned long folios, unsigned long bytes)
{
	for (unsigned long i = 0; i < folios; i++)
		at[i * bytes] = 1;
}

static char *mapped(unsigned long folios, unsigned long bytes)
{
	char *at = mmap(NULL, (folios + 1) * bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	at += -(uintptr_t)at % bytes;
	if (madvise(at, folios * bytes, MADV_HUGEPAGE))
		err(1, "MADV_HUGEPAGE");
	return at;
}

static void one_round(int me, unsigned int round, unsigned long folios,
		      unsigned long bytes)
{
	char *at = mapped(folios, bytes);

	if (!me)
		bmm_mark(BMM_MARK_RECORD);
	meet(&shared->ready, round);
	shared->begun[me] = now();
	if (me)
		bmm_mark(BMM_MARK_BEGIN(1));
	else
		bmm_mark(BMM_MARK_BEGIN(0));
	touch(at, folios, bytes);
	if (me)
		bmm_mark(BMM_MARK_END(1));
	else
		bmm_mark(BMM_MARK_END(0));
	shared->ended[me] = now();
	meet(&shared->done, round);
	munmap(at, folios * bytes);
}

static void report(unsigned int round)
{
	uint64_t both = shared->ended[0] < shared->ended[1] ? shared->ended[0] :
							      shared->ended[1];
	uint64_t from = shared->begun[0] > shared->begun[1] ? shared->begun[0] :
							      shared->begun[1];

	printf("round=%u ns0=%lu ns1=%lu together_ns=%lu\n", round,
	       shared->ended[0] - shared->begun[0],
	       shared->ended[1] - shared->begun[1],
	       both > from ? both - from : 0);
}

int main(int argc, char **argv)
{
	unsigned long rounds, folios, bytes;
	int me = 0, status = 0;
	cpu_set_t cpus;

	if (argc != 4 || sysconf(_SC_NPROCESSORS_ONLN) < PAIR) {
		fprintf(stderr,
			"usage, with two CPUs: bmmpair ROUNDS FOLIOS KIB\n");
		return 2;
	}
	rounds = strtoul(argv[1], NULL, 0);
	folios = strtoul(argv[2], NULL, 0);
	bytes = strtoul(argv[3], NULL, 0) * 1024;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	if (!fork())
		me = 1;
	CPU_ZERO(&cpus);
	CPU_SET(me, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "sched_setaffinity");
	for (unsigned int round = 0; round < rounds; round++) {
		one_round(me, round, folios, bytes);
		if (!me)
			report(round);
	}
	if (me)
		_exit(0);
	wait(&status);
	return !!status;
}
