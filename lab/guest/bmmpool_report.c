// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bmm_populate() reports, and what became of the memory. OPTIONS:
 *
 *	threads=N node=N        of bmm_options
 *	bind=N                  mbind() the range to a node
 *	cpu=N                   begin on a CPU, not pinned to it
 *	halves                  its first half to node 0, the other to node 1
 *	interleave              its pages to both in turn
 *	read                    read every page first
 *	poison                  break the page in the middle
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bulkmm.h"
#include "bmmpool.h"

#define PARTS	   8
#define BIND	   2 /* as in <linux/mempolicy.h> */
#define INTERLEAVE 3
#define POISON	   100

/* The CPU masks that threads were seen with, of 6 CPUs; bit N is mask N. */
static uint64_t sets;

/* Called repeatedly by one of the threads: how all of them are bound. */
static int look_at_threads(void *context, size_t done, size_t len)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *one;
	uint64_t set;

	(void)context, (void)done, (void)len;
	while (tasks && (one = readdir(tasks))) {
		set = 0;
		if (atoi(one->d_name) > 0 &&
		    syscall(SYS_sched_getaffinity, atoi(one->d_name),
			    sizeof(set), &set) > 0 &&
		    set < 64)
			sets |= 1UL << set;
	}
	if (tasks)
		closedir(tasks);
	return 0;
}

static void bind_to(const struct memory *m, size_t from, size_t len, int mode,
		    unsigned long nodes)
{
	if (syscall(SYS_mbind, m->at + from, len, mode, &nodes, 64UL, 0))
		err(1, "mbind");
}

static void begin_on(int cpu)
{
	uint64_t before = 0, set = 1UL << cpu;

	if (syscall(SYS_sched_getaffinity, 0, sizeof(before), &before) < 0 ||
	    syscall(SYS_sched_setaffinity, 0, sizeof(set), &set) ||
	    syscall(SYS_sched_setaffinity, 0, sizeof(before), &before))
		err(1, "CPU");
}

static void on_broken(int number)
{
	(void)number; /* the page was broken on purpose: nothing to do */
}

static void poison(const struct memory *m)
{
	size_t at = m->len / 2;

	signal(SIGBUS, on_broken);
	m->at[at] = 1;
	if (madvise(m->at + at, SMALL, POISON))
		err(1, "MADV_HWPOISON");
}

static void read_all(const struct memory *m)
{
	for (size_t i = 0; i < m->len; i += SMALL)
		(void)*(volatile char *)(m->at + i);
}

static void prepare(const struct memory *m, const char *word,
		    struct bmm_options *options)
{
	if (sscanf(word, "threads=%u", &options->threads) == 1)
		return;
	if (sscanf(word, "node=%u", &options->node) == 1)
		options->flags |= BMM_ON_NODE;
	else if (!strncmp(word, "bind=", 5))
		bind_to(m, 0, m->len, BIND, 1UL << atoi(word + 5));
	else if (!strncmp(word, "cpu=", 4))
		begin_on(atoi(word + 4));
	else if (!strcmp(word, "interleave"))
		bind_to(m, 0, m->len, INTERLEAVE, 3);
	else if (!strcmp(word, "halves")) {
		bind_to(m, 0, m->len / 2, BIND, 1);
		bind_to(m, m->len / 2, m->len / 2, BIND, 2);
	} else if (!strcmp(word, "read"))
		read_all(m);
	else if (!strcmp(word, "poison"))
		poison(m);
	else {
		errno = EINVAL;
		err(1, "%s", word);
	}
}

static void say_sets(char *text)
{
	for (unsigned int set = 0; set < 64; set++)
		if (sets >> set & 1)
			text += sprintf(text, "%x.", set);
	*text = 0;
}

int report(const char *kind, size_t len, char **options)
{
	struct bmm_options asked = { .size = sizeof(asked),
				     .progress = look_at_threads };
	struct bmm_report said = { .size = sizeof(said) };
	char nodes[PARTS + 1], cpus[256] = "";
	struct memory m = { .fd = -1 };
	uint64_t before = 0, after = 0;
	size_t good;
	long taken;

	if (*kind == '/')
		memory_file(&m, kind, len);
	memory_map(&m, kind, len, 0);
	for (; *options; options++)
		prepare(&m, *options, &asked);
	syscall(SYS_sched_getaffinity, 0, sizeof(before), &before);
	if (bmm_populate(m.at, len, &asked, &said) != said.error)
		return 1;
	syscall(SYS_sched_getaffinity, 0, sizeof(after), &after);
	good = (size_t)((char *)said.reached - m.at);
	taken = memory_faults(&m, good);
	m.len = good;
	memory_nodes(&m, nodes, PARTS);
	say_sets(cpus);
	printf("error=%d cause=%d done=%zu reached=%zu failed_len=%zu "
	       "threads=%u faults=%ld wrong=%lu nodes=%s. cpus=%s same=%d\n",
	       -said.error, said.cause, said.done, good, said.failed_len,
	       said.threads, taken, memory_wrong(&m), nodes, cpus,
	       before == after);
	return 0;
}
