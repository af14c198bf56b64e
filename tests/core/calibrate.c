// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calibration in unusual circumstances, with the clock, the work and the CPU's
 * features as a test wants them (--wrap). Prints what is selected.
 *
 *	calibrate costs OP NS...   each candidate's samples take so long
 *	calibrate close OP NS...   the last one's ten times as long if the  source
 *				   is close behind the destination
 *	calibrate long OP NS...    only calls of BMM_CALIBRATE_EXTENT bytes take
 *				   so long, all others the same
 *	calibrate ask OP NS...     as long, and a thread asks meanwhile
 *	calibrate still            the clock stands still
 *	calibrate old              without CLFLUSHOPT
 *	calibrate threads          64 threads come at once
 *	calibrate signal           a signal handler calls in the middle of it
 *	calibrate fork             a child is made in the middle of it
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate.h"
#include "select.h"

#define THREADS 64
#define BYTES	8192U

static bool still, old, close_hurts, only_long;
static uint64_t now; /* of a clock that costs drive; 0: the real one */
static uint64_t costs[BMM_CANDIDATES];
static enum bmm_op op;
static void (*in_sample)(void);

uint64_t __real_bmm_host_clock(void);
uint64_t __wrap_bmm_host_clock(void);
bool __real_bmm_host_has(enum bmm_cpu feature);
bool __wrap_bmm_host_has(enum bmm_cpu feature);
void __real_bmm_job_do(const struct bmm_job *job,
		       const struct bmm_backend *backend);
void __wrap_bmm_job_do(const struct bmm_job *job,
		       const struct bmm_backend *backend);

uint64_t __wrap_bmm_host_clock(void)
{
	return still ? 1 : now ? now : __real_bmm_host_clock();
}

bool __wrap_bmm_host_has(enum bmm_cpu feature)
{
	return (!old || feature != BMM_CPU_CLFLUSHOPT) &&
	       __real_bmm_host_has(feature);
}

/* Fails on a page that was only read: it is the kernel's page of zeros. */
static void expect_own_page(const void *at)
{
	int file = open("/proc/self/pagemap", O_RDONLY);
	off_t entry = (off_t)((uintptr_t)at / 4096 * 8);
	uint64_t flags = 0;

	if (pread(file, &flags, 8, entry) != 8 || !(flags >> 56 & 1))
		abort();
	close(file);
}

void __wrap_bmm_job_do(const struct bmm_job *job,
		       const struct bmm_backend *backend)
{
	const struct bmm_calls calls = { .op = op, .skewed = close_hurts };
	const struct bmm_backend *list[BMM_CANDIDATES];
	unsigned int nr = bmm_candidates(&calls, list), k;
	uintptr_t ahead = (uintptr_t)job->dst - (uintptr_t)job->src;
	bool hurt = close_hurts && ahead % 4096 < 64;
	void (*once)(void) = in_sample;

	in_sample = NULL;
	if (!now && job->src)
		expect_own_page(job->src);
	if (once)
		once();
	if (only_long && job->len < BMM_CALIBRATE_EXTENT)
		now += job->len;
	else
		for (k = 0; now && k < nr; k++)
			if (list[k] == backend)
				now += costs[k] * (hurt && k == nr - 1 ? 10 : 1);
	__real_bmm_job_do(job, backend);
}

static void print_all(void)
{
	char text[200];
	int each;

	for (each = 0; each < (int)BMM_OPS; each++) {
		bmm_backend_selection((enum bmm_op)each, text, sizeof(text));
		puts(text);
	}
}

/* Whether an operation does its work now, whatever is under way. */
static void use(void)
{
	char to[BYTES], from[BYTES];

	memset(from, 1, BYTES);
	bmm_copy(to, from, BYTES);
	if (memcmp(to, from, BYTES))
		abort();
	bmm_clear(to, BYTES);
	if (to[0] || memcmp(to, to + 1, BYTES - 1))
		abort();
}

static void use_in_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		use();
		/* The thread that was at it is not in this process. */
		now = __real_bmm_host_clock() + 2000000000;
		bmm_measure();
		print_all();
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (status)
		abort();
}

static void *use_after(void *barrier)
{
	pthread_barrier_wait(barrier);
	use();
	bmm_measure();
	return NULL;
}

static void use_threads(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	int i;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, use_after, &barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static char asked[200];
static pthread_t asker;

static void *ask(void *arg)
{
	bmm_backend_selection(op, asked, sizeof(asked));
	return arg;
}

/* Long enough for an answer that does not wait. */
static void ask_meanwhile(void)
{
	pthread_create(&asker, NULL, ask, NULL);
	usleep(50000);
}

static void use_costs(int nr, char **words)
{
	struct bmm_calls calls = { .len = BMM_CALIBRATE_EXTENT,
				   .hot = close_hurts,
				   .cold = true,
				   .skewed = close_hurts };
	static char buffer[BMM_CALIBRATE_BYTES]
		__attribute__((__aligned__(4096)));
	struct bmm_calibration made;
	char list[400];
	struct bmm_text text = { .buf = list, .size = sizeof(list) };
	int k;

	now = 1;
	calls.op = op = (enum bmm_op)atoi(words[0]);
	for (k = 0; k < nr - 1; k++)
		costs[k] = strtoull(words[k + 1], NULL, 10);
	if (only_long) {
		bmm_backend_selection(op, list, sizeof(list));
		puts(list);
		if (asker) {
			pthread_join(asker, NULL);
			puts(asked);
		}
		return;
	}
	bmm_calibrate(&calls, buffer, &made);
	bmm_calibration_list(&text, &made, &calls, made.selected);
	bmm_text_end(&text);
	puts(list);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	still = !strcmp(how, "still");
	old = !strcmp(how, "old");
	close_hurts = !strcmp(how, "close");
	in_sample = strcmp(how, "ask") ? NULL : ask_meanwhile;
	only_long = !strcmp(how, "long") || in_sample;
	if ((close_hurts || only_long || !strcmp(how, "costs")) && argc > 2) {
		use_costs(argc - 2, argv + 2);
		return 0;
	}
	if (!strcmp(how, "signal"))
		in_sample = use;
	if (!strcmp(how, "fork"))
		in_sample = use_in_child;
	if (!strcmp(how, "threads"))
		use_threads();
	print_all();
	return 0;
}
