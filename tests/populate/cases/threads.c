// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How many threads there are, and which piece was slow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bmm_host.h"
#include "cases.h"

/* Threads that sleep: each of them adds as much as the first. */
CASE(grows, HERE)
{
	struct bmm_options capped = OPTIONS(.threads = 5);
	size_t len = 1024 * MIB;
	char *p = anonymous(len);
	unsigned int threads;

	cpus_made = 48;
	sleep_us = 500; /* so that a busy machine gains too */
	threads = all_of(p, len, NULL).threads;
	check(threads >= 8 && threads <= 48);
	check(all_of(p, len, &capped).threads == 5);
	cpus_made = 3;
	threads = all_of(p, len, NULL).threads;
	/* beside other work the third may not have paid */
	check(threads >= 2 && threads <= 3);
	created = 0;
	check(all_of(p, 64 * MIB - PAGE, NULL).threads == 1 && !created);
}

/*
 * Bytes that were done by more than @best threads, of @total, with a made-up
 * machine on which all together never get faster than @best of them.
 */
static size_t wasted(unsigned int best, size_t total, unsigned int *last)
{
	size_t done, above = 0, slice = 2 * MIB;
	unsigned int steps[64] = { 0 };
	struct scaling scaling;
	unsigned int id;

	scaling_start(&scaling, 1, 64);
	for (done = 0; done < total; scaling_next(&scaling, done, total - done))
		for (id = 0; id < scaling.now; id++) {
			uint64_t ns = 200000;

			if (scaling.now > best)
				ns = ns * scaling.now / best;
			scaling_feed(&scaling, &steps[id], scaling.step, slice,
				     ns + done % 977);
			done += slice;
			above += scaling.now > best ? slice : 0;
		}
	*last = scaling.best;
	return above;
}

CASE(finds_how_many, HERE)
{
	static const unsigned int bests[] = { 1, 2, 4, 8, 16, 32, 64 };
	unsigned int last, i;
	size_t above;

	for (i = 0; i < 7; i++) {
		above = wasted(bests[i], 64UL << 30, &last);
		check(last == bests[i]);
		check(above < (64UL << 30) / 5);
		check(bests[i] < 64 || !above);
	}
	wasted(24, 64UL << 30, &last); /* between two steps: no step is half */
	check(last == 32);
}

/* Threads that wait for each other: it takes few to see that more do not pay. */
CASE(does_not_grow, HERE)
{
	size_t len = 512 * MIB;
	char *p = anonymous(len);

	cpus_made = 48;
	sleep_us = 1000;
	in_turn = true;
	/* 8 on an idle machine */
	check(all_of(p, len, NULL).threads < cpus_made / 2);
}

CASE(no_threads, HERE)
{
	size_t len = 512 * MIB;
	char *p = anonymous(len);
	unsigned int most, threads;

	cpus_made = 48;
	sleep_us = 1000; /* so that a busy machine gains too */
	for (most = 0; most < 18; most++) {
		creations = (int)most;
		threads = all_of(p, len, NULL).threads;
		check(threads <= most + 1);
		check(threads == most + 1 || most > 2);
	}
}

/* On arm64 a stack of 64 KiB is refused; here one that has all of our TLS. */
CASE(stacks_of_least_size, HERE)
{
	size_t len = 512 * MIB;

	cpus_made = 8;
	sleep_us = 500;
	stack_least = MIB;
	check(all_of(anonymous(len), len, NULL).threads > 1);
}

CASE(stall, HERE)
{
	struct bmm_report report;
	size_t len = 256 * MIB;
	char *p = anonymous(len);
	char text[256];
	int tries = 200;

	sleep_us = 50;
	stall_at = (uintptr_t)p + 100 * MIB;
	/* beside other work another piece may be slower, or this one */
	do
		report = all_of(p, len, NULL);
	while ((stall_at - (uintptr_t)report.slow >= report.slow_len ||
		report.slow_ns >= 300000000) &&
	       --tries);
	check(stall_at - (uintptr_t)report.slow < report.slow_len);
	check(report.slow_ns >= 200000000 &&
	      report.slow_ns > 8 * report.usual_ns);
	check(report.slow_cause >= BMM_CAUSE_UNKNOWN);
	bmm_report_text(&report, text, sizeof(text));
	check(strstr(text, " took 2") && strstr(text, "elsewhere"));
	stall_at = 0;
	do
		report = all_of(p, len, NULL);
	while (report.slow_len && --tries);
	check(!report.slow_len);
	check(!bmm_report_text(&report, text, sizeof(text)));
}

/* On the CPU that the caller is bound to, and before it in every queue. */
static pid_t other_work(void)
{
	struct sched_param first = { .sched_priority = 1 };
	pid_t child = fork();
	uint64_t until;

	if (child)
		return child;
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		_exit(1);
	usleep(30000);
	for (until = bmm_host_clock() + 600000000; bmm_host_clock() < until;)
		;
	_exit(0);
}

/* A piece that is slow because its thread does not run. */
CASE(preempted, HERE)
{
	struct bmm_report report = REPORT;
	size_t len = 1024 * MIB;
	char *p = anonymous(len);
	struct cpus cpus;
	int status = -1, tries = 10;
	pid_t child;

	cpus_bind(&(struct cpus){ .bits = { { { 1 } } } });
	if (cpus_allowed(&cpus) != 1)
		exit(SKIPPED); /* the first CPU is not for this process */
	do {
		madvise(p, len, MADV_DONTNEED);
		child = other_work();
		check(!bmm_populate(p, len, NULL, &report));
		waitpid(child, &status, 0);
		if (status)
			exit(SKIPPED); /* no such priority here */
	} while (report.slow_cause != BMM_CAUSE_PREEMPTED && --tries);
	check(report.slow_cause == BMM_CAUSE_PREEMPTED);
}

/* The kernel does all of it then, and that is work for several. */
CASE(grows_after_fork, HERE)
{
	size_t len = 512 * MIB, i;
	char *p = anonymous(len);
	pid_t child = fork();

	if (!child)
		_exit(0);
	check(waitpid(child, NULL, 0) == child);
	p += -(uintptr_t)p & (2 * MIB - 1);
	len -= 2 * MIB;
	for (i = 0; i < len; i += 2 * MIB)
		p[i] = 1;
	cpus_made = 8;
	sleep_us = 500;
	check(all_of(p, len, NULL).threads > 1);
}

/* Each small page that is copied interrupts all the threads. */
CASE(copies_alone, HERE)
{
	char *p = anonymous(LEN), *zeroes = anonymous(LEN);
	pid_t child;

	memset(p, 1, LEN);
	faults_of(zeroes, LEN, false);
	child = fork();
	if (!child)
		while (true)
			pause();
	cpus_made = 8;
	sleep_us = 500;
	check(all_of(p, LEN, NULL).threads == 1);
	check(all_of(zeroes, LEN, NULL).threads == 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Not told which CPUs, nor how many: then the caller is enough. */
CASE(unknown_cpus, HERE)
{
	size_t len = 512 * MIB;
	char *p = anonymous(len);

	forbid(SYS_sched_getaffinity, 0, ~0U, 0, 0, EPERM);
	nodes_made = true;
	sleep_us = 500;
	check(all_of(p, len, NULL).threads == 1);
}

/* Where all its CPUs are of the node, a thread is not bound, nor unbound. */
CASE(bound_as_before, HERE)
{
	struct bmm_options alone = OPTIONS(.threads = 1);
	char *p = anonymous(LEN);

	nodes_made = true;
	check(!bmm_populate(p, LEN, &alone, NULL));
	check(!bound);
}

/* A CPU list of a node as long as a file of /sys may have it. */
static char list_of_cpus[8192];

CASE(long_list_of_cpus, HERE)
{
	struct nodes nodes = { .bits = { { { 1 } } } };
	struct cpus cpus;
	size_t len = 0;
	unsigned int i;

	memset(&cpus, 0xff, sizeof(cpus));
	for (i = 0; i < 1500; i++) /* every second one, up to 2998 */
		len += (size_t)snprintf(list_of_cpus + len, 8, "%u,", 2 * i);
	list_of_cpus[len - 1] = '\n';
	cpus_listed = list_of_cpus;
	check(cpus_of_nodes(&nodes, &cpus) == 1500);
	check(SET_HAS(&cpus, 2998) && !SET_HAS(&cpus, 2997));
}

/* A node is a CPU here. */
static void two_nodes(char *p, size_t len)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || !CPU_ISSET(0, &cpus) ||
	    !CPU_ISSET(1, &cpus))
		exit(SKIPPED);
	nodes_made = true;
	sleep_us = 5000; /* a thread may wait for a busy CPU */
	check(all_of(p, len, NULL).threads == 2);
}

CASE(halves_of_nodes, HERE)
{
	size_t len = 256 * MIB;
	char *p = anonymous(len);

	check(!madvise(p, len / 2, MADV_DONTDUMP)); /* a mapping each */
	second_node = (uintptr_t)p + len / 2;
	two_nodes(p, len);
	/* each begins with its own memory, then helps with the other's */
	check(ran[0][0] && ran[1][1]);
}

/* Memory that has no policy comes from the caller's node, whoever helps. */
CASE(a_half_without_a_policy, HERE)
{
	size_t len = 256 * MIB;
	char *p = anonymous(len);
	int mode = -1;

	check(!madvise(p, len / 2, MADV_DONTDUMP));
	second_node = (uintptr_t)p + len / 2;
	first_local = true;
	two_nodes(p, len);
	check(advised && !strays);
	__real_syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL);
	check(mode == MODE_DEFAULT);
}

CASE(interleaved_nodes, HERE)
{
	size_t len = 256 * MIB;

	second_node = SIZE_MAX;
	two_nodes(anonymous(len), len);
	check(ran[0][0] && ran[0][1]);
}

static cpu_set_t own; /* the program's */

/* What a thread that is started here would inherit. */
static int see_own(void *context, void *addr, size_t len)
{
	unsigned int *calls = context;
	cpu_set_t now = { 0 };
	int mode = -1;

	(void)addr;
	(void)len;
	sched_getaffinity(0, sizeof(now), &now);
	check(CPU_EQUAL(&now, &own));
	__real_syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL);
	check(mode == MODE_DEFAULT);
	++*calls;
	return 0;
}

static int see_own_progress(void *context, size_t done, size_t len)
{
	return see_own(context, NULL, done + len);
}

static void calls_as_itself(char *p, size_t len, uint32_t flags)
{
	struct bmm_options options = OPTIONS(.flags = flags,
					     .progress = see_own_progress);
	unsigned int calls = 0, i;

	options.context = &calls;
	sched_getaffinity(0, sizeof(own), &own);
	for (i = 0; i < 4; i++) {
		options.threads = i % 2; /* the caller alone, too */
		options.ready = i < 2 ? NULL : see_own;
		all_of(p, len, &options);
	}
	check(calls >= 4);
	see_own(&calls, NULL, 0);
}

/* A callback is as the program is: where it runs, and what it allocates. */
CASE(callbacks_on_a_node, HERE)
{
	char *p = anonymous(LEN);

	sleep_us = 500;
	calls_as_itself(p, LEN, BMM_ON_NODE);
}

CASE(callbacks_where_the_program_runs, HERE)
{
	size_t len = 256 * MIB;
	char *p = anonymous(len);

	check(!madvise(p, len / 2, MADV_DONTDUMP));
	second_node = (uintptr_t)p + len / 2;
	first_local = true;
	two_nodes(p, len);
	sleep_us = 500;
	calls_as_itself(p, len, 0);
}
