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

#include "bmmpool.h"
#include "measure.h"

#define PARTS 8

/* The CPU masks that threads were seen with, of 6 CPUs; bit N is mask N. */
static uint64_t sets;

/* Called repeatedly by one of the threads: how all of them are bound. */
static int look_at_threads(void *context, size_t done, size_t len)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *one;
	uint64_t set;

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

static void poison(const struct memory *m)
{
	size_t at = m->len / 2;

	signal(SIGBUS, ignored);
	m->at[at] = 1;
	if (madvise(m->at + at, SMALL, MADV_HWPOISON))
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
		bound(m->at, m->len, MPOL_BIND, 1UL << atoi(word + 5));
	else if (!strncmp(word, "cpu=", 4)) {
		run_on(atoi(word + 4));
		run_on(-1);
	} else if (!strcmp(word, "interleave"))
		bound(m->at, m->len, MPOL_INTERLEAVE, 3);
	else if (!strcmp(word, "halves")) {
		bound(m->at, m->len / 2, MPOL_BIND, 1);
		bound(m->at + m->len / 2, m->len / 2, MPOL_BIND, 2);
	} else if (!strcmp(word, "read"))
		read_all(m);
	else if (!strcmp(word, "poison"))
		poison(m);
	else
		errx(1, "no option %s", word);
}

static void say_sets(char *text)
{
	for (unsigned int set = 0; set < 64; set++)
		if (sets >> set & 1)
			text += sprintf(text, "%x.", set);
	*text = 0;
}

/* KIND MIB OPTION... */
void report(char **word)
{
	const char *kind = word[0];
	size_t good, len = number(word[1]) << 20;
	struct bmm_options asked = { .size = sizeof(asked),
				     .progress = look_at_threads };
	struct bmm_report said = { .size = sizeof(said) };
	char nodes[PARTS + 1], cpus[256] = "";
	struct memory m = { .fd = -1 };
	uint64_t before = 0, after = 0;
	long taken;

	if (*kind == '/')
		memory_file(&m, kind, len);
	memory_map(&m, kind, len, 0);
	for (char **option = word + 2; *option; option++)
		prepare(&m, *option, &asked);
	syscall(SYS_sched_getaffinity, 0, sizeof(before), &before);
	if (bmm_populate(m.at, len, &asked, &said) != said.error)
		errx(1, "a report of another error");
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
}
