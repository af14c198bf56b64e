// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How long the library takes on machines that are not at hand: its own code, in
 * virtual time, beside as many threads as there are CPUs, all started before
 * the work. Prints a JSON line for each machine. The figures are a model's:
 * bandwidth is shared evenly, a thread on another node's memory has 70 % of the
 * rate, a call that populates holds the lock of the address space for reading.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/populate/populate.h"
#include "machine.h"
#include "scheduler.h"

#define GIB	 ((size_t)1 << 30)
#define STACKS	 (128 * KIB)
#define PIECE_NS 10000000U /* a driver's registration of a GiB */
#define SLICE	 (16 * MIB)

/* What is measured: memory on the nodes in equal parts. */
static struct run {
	size_t gib, page;
	bool registers;
	uint64_t ns;	   /* the library */
	uint64_t first_ns; /* all threads first */
	unsigned int threads;
} run;

static bool json;

static size_t len_of(unsigned int node)
{
	size_t pages = run.gib * GIB / run.page;

	return (pages * (node + 1) / model.nodes - pages * node / model.nodes) *
	       run.page;
}

static void map_run(void)
{
	uintptr_t at = TIB;
	unsigned int node;

	forget_memory();
	for (node = 0; node < model.nodes; node++) {
		map_memory(at, len_of(node), run.page, node);
		at += len_of(node);
	}
}

static int register_piece(void *context, void *addr, size_t len)
{
	(void)context;
	(void)addr;
	sleep_task(PIECE_NS * len / GIB);
	return 0;
}

static void run_library(void)
{
	struct bmm_options options = { .size = sizeof(options) };
	struct bmm_report report = { .size = sizeof(report) };

	if (run.registers)
		options.ready = register_piece;
	if (bmm_populate((void *)TIB, run.gib * GIB, &options, &report) ||
	    report.done != run.gib * GIB)
		exit(2);
	run.ns = now;
	run.threads = report.threads;
}

static size_t taken[NODES];

/* Takes its own node's memory first, as the library's threads do. */
static void *clear_all(void *node)
{
	size_t slice = run.page > SLICE ? run.page : SLICE;
	unsigned int i, of;

	bind_task((int)(uintptr_t)node);
	for (i = 0; i < model.nodes; i++) {
		of = ((unsigned int)(uintptr_t)node + i) % model.nodes;
		while (taken[of] < len_of(of)) {
			taken[of] += slice;
			clear_memory(slice, of);
		}
	}
	return NULL;
}

static void run_all_first(void)
{
	size_t pages = run.gib * GIB / (run.page > SLICE ? run.page : SLICE);
	struct task *tasks[THREADS_MAX];
	char *stacks = malloc(THREADS_MAX * STACKS);
	unsigned int i,
		nr = model.cpus < pages ? model.cpus : (unsigned int)pages;

	memset(taken, 0, sizeof(taken));
	for (i = 0; i < nr; i++) {
		sleep_task(model.create_ns);
		tasks[i] = start_task(clear_all,
				      (void *)(uintptr_t)(i % model.nodes),
				      stacks + i * STACKS, STACKS);
	}
	for (i = 0; i < nr; i++)
		join_task(tasks[i]);
	run.first_ns = now;
	free(stacks);
}

static void print_run(void)
{
	const char *format =
		json ? "{\"gib\": %zu, \"page_mib\": %zu, \"cpus\": %u, "
		       "\"saturate\": %u, \"nodes\": %u, \"registers\": %s, "
		       "\"threads\": %u, \"ms\": %.3f, \"first_ms\": %.3f, "
		       "\"ratio\": %.3f}\n" :
		       "%5zu %8zu %5u %9u %6u %9s %8u %9.0f %10.0f %6.2f\n";

	printf(format, run.gib, run.page / MIB, model.cpus, model.saturate,
	       model.nodes, run.registers ? "true" : "false", run.threads,
	       (double)run.ns / 1e6, (double)run.first_ns / 1e6,
	       (double)run.ns / (double)run.first_ns);
}

static void measure(size_t gib, size_t page, bool registers)
{
	run = (struct run){ .gib = gib, .page = page, .registers = registers };
	map_run();
	run_model(run_library);
	run_model(run_all_first);
	print_run();
}

int main(int argc, char **argv)
{
	static const struct {
		unsigned int cpus, saturate, nodes;
	} machines[] = { { 16, 8, 1 },	 { 32, 8, 1 },	 { 64, 16, 2 },
			 { 128, 24, 2 }, { 128, 40, 4 }, { 96, 16, 1 } };
	static const size_t sizes[] = { 64, 256, 1500 };
	static const size_t pages[] = { GIB, 2 * MIB };
	size_t i, size, page;

	json = argc > 1 && !strcmp(argv[1], "--json");
	if (!json)
		puts("  GiB MiB/page  CPUs saturated  nodes registers  threads        ms  first, ms  ratio");
	for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		model = (struct model){ .cpus = machines[i].cpus,
					.nodes = machines[i].nodes,
					.saturate = machines[i].saturate,
					.rate = 10,
					.remote = 0.7,
					.create_ns = 70000 };
		for (page = 0; page < 2; page++)
			for (size = 0; size < (page ? 1 : 3); size++)
				measure(sizes[size], pages[page], false);
		measure(256, GIB, true);
	}
	return 0;
}
