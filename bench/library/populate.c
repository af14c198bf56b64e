// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-populate: one way to make memory resident, in a process of its own: once,
 * or the median of several times where the call's own cost is to be seen.
 *
 *	bmm-populate SCENARIO KIND SIZE WAY[-THREADS]
 *
 * prints the events of the bench: a sample and a verdict. The verdict is that
 * every byte is zero and that writing to a page takes no page fault.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define SMALL_PAGE 4096U
#define WORKERS	   512U
#define CALLS	   101U
#define FEW	   ((size_t)64 << 20) /* bytes, from which one call suffices */
#define ALIGN	   ((size_t)1 << 30)  /* no huge page is split, whoever maps */

struct memory {
	const char *kind;
	size_t len;
	char *base;
	int file;
};

/* limit.c needs this for stamping, which is not used here. */
const struct bmm_image *pages_image(void)
{
	return NULL;
}

static int map_flags(const struct memory *m)
{
	int flags = m->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	return strcmp(m->kind, "hugetlb") ? flags : flags | MAP_HUGETLB;
}

/* At an aligned address. With MAP_POPULATE in @more it is populated at once. */
static int map_memory(struct memory *m, int more)
{
	char *room = mmap(NULL, m->len + ALIGN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return -1;
	m->base = room + (-(uintptr_t)room & (ALIGN - 1));
	m->base = mmap(m->base, m->len, PROT_READ | PROT_WRITE,
		       map_flags(m) | MAP_FIXED | more, m->file, 0);
	return m->base == MAP_FAILED ? -1 : 0;
}

/* Small pages where the kernel has the choice, or huge ones where it can. */
static int prepare(struct memory *m)
{
	bool thp = !strcmp(m->kind, "thp");

	if (!thp && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return -1;
	if (!strcmp(m->kind, "memfd")) {
		m->file = memfd_create("bmm-populate", MFD_CLOEXEC);
		if (m->file < 0 || ftruncate(m->file, (off_t)m->len))
			return -1;
	}
	return 0;
}

struct share {
	pthread_t thread;
	const struct limit *limit;
	char *from;
	size_t len;
};

/* Without a limit: the kernel's own function, which must not fail. */
static void *populate_share(void *arg)
{
	struct share *share = arg;

	if (share->limit) {
		limit_write(share->limit, BMM_CLEAR_STREAMING, share->from,
			    NULL, share->len);
	} else if (madvise(share->from, share->len, MADV_POPULATE_WRITE)) {
		perror("bmm-populate: MADV_POPULATE_WRITE");
		exit(2);
	}
	return NULL;
}

/* Plain threads over equal shares suffice for the limit. */
static void populate_shares(const struct limit *limit, const struct memory *m,
			    unsigned int threads)
{
	struct share shares[WORKERS];
	size_t chunk = m->len / threads & ~(size_t)(SMALL_PAGE - 1);
	unsigned int i;

	for (i = 0; i < threads; i++) {
		shares[i] = (struct share){ .limit = limit,
					    .from = m->base + i * chunk,
					    .len = chunk };
		if (i + 1 == threads)
			shares[i].len = m->len - i * chunk;
		else if (pthread_create(&shares[i].thread, NULL, populate_share,
					&shares[i]))
			exit(2);
	}
	populate_share(&shares[threads - 1]);
	for (i = 0; i + 1 < threads; i++)
		pthread_join(shares[i].thread, NULL);
}

/* The fastest kind of stores over resident memory. */
static uint64_t limit(const struct memory *m, unsigned int threads,
		      const char **name)
{
	const struct limit *kind;
	uint64_t best = UINT64_MAX, ns;
	size_t i;

	memset(m->base, POISON, m->len);
	for (i = 0; (kind = limit_at(BMM_CLEAR_STREAMING, i)); i++) {
		ns = bmm_host_clock();
		populate_shares(kind, m, threads);
		ns = bmm_host_clock() - ns;
		if (ns < best) {
			best = ns;
			*name = limit_name(kind);
		}
	}
	return best;
}

static int populate(const struct memory *m, unsigned int threads)
{
	struct bmm_options options = BMM_OPTIONS_INIT(.threads = threads);

	return bmm_populate(m->base, m->len, &options, NULL);
}

/* A store to each huge page; none may be left out, as zero already. */
static uint64_t touch(const struct memory *m, char value)
{
	uint64_t ns = bmm_host_clock();
	size_t i;

	for (i = 0; i < m->len; i += HUGE_SIZE)
		*(volatile char *)(m->base + i) = value;
	return bmm_host_clock() - ns;
}

/*
 * A store to each page while a child has it, too, so that it is copied: the
 * child must still see zeros. Without as many free pages again the kernel
 * takes the child's away, which kills it.
 */
static uint64_t write_forked(const struct memory *m)
{
	int pipes[2], status = -1;
	uint64_t ns;
	pid_t child;
	char end;

	if (populate(m, 1) || pipe(pipes))
		return 0;
	child = fork();
	if (!child) {
		close(pipes[1]);
		_exit(read(pipes[0], &end, 1) || !bytes_are(m->base, m->len, 0));
	}
	ns = touch(m, 1);
	close(pipes[0]);
	close(pipes[1]);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		return 0;
	touch(m, 0);
	return ns;
}

/* ns, or 0 if the way is unknown or fails. */
static uint64_t time_way(struct memory *m, const char *way,
			 unsigned int threads, const char **backend)
{
	bool at_once = !strcmp(way, "map-populate");
	int error = 0;
	uint64_t ns;

	if (!at_once && map_memory(m, 0))
		return 0;
	if (!strcmp(m->kind, "thp")) {
		if (at_once) /* the system's own setting decides */
			return 0;
		madvise(m->base, m->len, MADV_HUGEPAGE);
	}
	if (!strcmp(way, "limit"))
		return limit(m, threads, backend);
	if (!strncmp(way, "resident", 8) && populate(m, threads))
		return 0;
	if (!strcmp(way, "touch"))
		return touch(m, 0);
	if (!strcmp(way, "fork"))
		return write_forked(m);
	ns = bmm_host_clock();
	if (at_once)
		error = map_memory(m, MAP_POPULATE);
	else if (!strcmp(way, "memset"))
		memset(m->base, 0, m->len);
	else if (!strcmp(way, "madvise") || !strcmp(way, "resident-madvise"))
		populate_shares(NULL, m, threads);
	else if (!strcmp(way, "bulkmm") || !strcmp(way, "resident"))
		error = populate(m, threads);
	else
		error = -1;
	ns = bmm_host_clock() - ns;
	return error ? 0 : ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The same for @calls mappings, of which the last stays: the median. */
static uint64_t time_calls(struct memory *m, const char *way,
			   unsigned int threads, unsigned int calls,
			   const char **backend)
{
	uint64_t ns[CALLS];
	unsigned int i;

	for (i = 0; i < calls; i++) {
		if (i && munmap(m->base, m->len))
			return 0;
		if (i && m->file >= 0 &&
		    (ftruncate(m->file, 0) || ftruncate(m->file, (off_t)m->len)))
			return 0;
		ns[i] = time_way(m, way, threads, backend);
		if (!ns[i])
			return 0;
	}
	qsort(ns, calls, sizeof(*ns), by_value);
	return ns[calls / 2];
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Is every page there, and every byte zero? Writing must not fault. */
static bool all_there(const struct memory *m)
{
	long before = faults();
	volatile char *page;
	size_t i;

	for (i = 0; i < m->len; i += SMALL_PAGE) {
		page = m->base + i;
		*page = *page;
	}
	return faults() - before <= 8 && /* of the program's own */
	       bytes_are(m->base, m->len, 0);
}

int main(int argc, char **argv)
{
	struct memory m = { .file = -1 };
	const char *backend = NULL;
	unsigned int threads = 1;
	char way[32], *number;
	uint64_t ns;

	if (argc != 5 || strlen(argv[4]) >= sizeof(way)) {
		fputs("bmm-populate: SCENARIO KIND SIZE WAY[-THREADS]\n",
		      stderr);
		return 2;
	}
	m.kind = argv[2];
	m.len = strtoull(argv[3], NULL, 10);
	strcpy(way, argv[4]);
	number = strrchr(way, '-');
	if (number && number[1] >= '1' && number[1] <= '9') {
		threads = (unsigned int)atoi(number + 1);
		*number = 0;
	}
	if (!m.len || !threads || threads > WORKERS || prepare(&m)) {
		fputs("bmm-populate: no such memory\n", stderr);
		return 2;
	}
	ns = time_calls(&m, way, threads, m.len < FEW ? CALLS : 1, &backend);
	if (!ns) {
		fprintf(stderr, "bmm-populate: %s cannot be done here\n",
			argv[4]);
		return 2;
	}
	printf("{\"event\": \"sample\", \"scenario\": \"%s\", "
	       "\"variant\": \"%s\", \"bytes\": %zu, \"ns\": %llu}\n",
	       argv[1], argv[4], m.len, (unsigned long long)ns);
	if (backend)
		printf("{\"event\": \"served\", \"scenario\": \"%s\", "
		       "\"variant\": \"%s\", \"backend\": \"%s\"}\n",
		       argv[1], argv[4], backend);
	printf("{\"event\": \"verified\", \"scenario\": \"%s\", "
	       "\"variant\": \"%s\", \"ok\": %s}\n",
	       argv[1], argv[4], all_there(&m) ? "true" : "false");
	return 0;
}
