// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault huge pages in, by every way there is, and prove that a page nobody has
 * written to holds only zeros. Memory is filled with a pattern before it is
 * freed, and another such process can keep dirtying free memory, so that a page
 * that was not cleared shows.
 *
 * A folio counts only if it has the requested size according to the kernel's
 * page flags: a mapping that fell back to small pages would prove nothing.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bmmfault.h"
#include "measure.h"

struct seen *seen;

/*
 * Dirties the kernel's free memory through small pages: they come from
 * everywhere, merge again when freed, and are never cleared by the function
 * whose calls are counted. Rests for most of the time: what is proven takes
 * longer than a round, and an emulated CPU takes one of the host's.
 */
static void dirty_for_ever(uint64_t bytes)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (;;) {
		uint64_t start = now();
		void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			err(1, "no memory to dirty");
		fill(at, bytes / SMALL);
		munmap(at, bytes);
		usleep((useconds_t)((now() - start) / 1000) * 2);
	}
}

/* Proves a mapped batch; returns how many folios of it count. */
static uint64_t mapped_batch(const struct work *work, const struct way *way,
			     char *at, uint64_t folios)
{
	uint64_t start = now(), huge;
	int given = way->fault(work, way, at, folios);

	seen->ns += now() - start;
	if (!given)
		return 0;
	if (way->fd == FALLOCATE) /* there, and not mapped yet */
		look(work, way, at, folios);
	huge = huge_ones(work, at, folios);
	if (huge != folios && !work->seconds)
		errx(1, "%s: only %lu of %lu folios are of %lu KiB", way->name,
		     huge, folios, work->bytes / 1024);
	if (work->faults_only)
		return huge;
	if (work->plant) {
		at[folios * work->bytes - 1] = 1;
		tag(work, at + folios * work->bytes - GRANULE, GRANULE);
	}
	prove_batch(work, way, at, folios);
	fill((uint64_t *)at, folios * work->bytes / SMALL);
	tag(work, at, folios * work->bytes);
	return huge;
}

static uint64_t one_batch(const struct work *work, const struct way *way,
			  uint64_t folios)
{
	uint64_t bytes = folios * work->bytes, proved = 0;
	/* room to align it, and no other mapping close to it to merge with */
	char *room = mmap(NULL, bytes + 2 * work->bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uintptr_t at = (uintptr_t)room + work->bytes - 1;

	if (room == MAP_FAILED)
		err(1, "no address space");
	at &= ~(work->bytes - 1);
	if (map(work, way, (char *)at, bytes) != MAP_FAILED)
		proved = mapped_batch(work, way, (char *)at, folios);
	else if (!work->seconds)
		err(1, "%s: no memory for %lu folios", way->name, folios);
	munmap(room, bytes + 2 * work->bytes);
	return proved;
}

static void count(uint64_t wanted, uint64_t proved)
{
	seen->folios += proved;
	seen->refused += wanted - proved;
}

/* Faults a number of folios in by one way. */
static void run_once(const struct work *work, const struct way *way)
{
	struct work last = *work;

	last.plant = 0;
	for (uint64_t left = work->folios; left;) {
		uint64_t n = left < work->batch ? left : work->batch;

		left -= n;
		count(n, one_batch(left ? &last : work, way, n));
	}
}

/* Time is up, and the awaited file exists. */
static int over(const struct work *work, uint64_t end)
{
	return now() >= end && (!work->until || !access(work->until, F_OK));
}

/* Faults folios in by all named ways in turn, until time is up. */
static void run_long(const struct work *work, const struct way *const *chosen,
		     int n)
{
	uint64_t end = now() + work->seconds * 1000000000UL;

	for (int i = 0; !over(work, end); i = (i + 1) % n) {
		uint64_t proved = one_batch(work, chosen[i], work->batch);

		count(work->batch, proved);
		if (!proved)
			usleep(1000);
	}
}

static void prepare(void)
{
	folio_init();
	seen = mmap(NULL, SMALL, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		err(1, "no memory");
}

static void run(const struct asked *asked)
{
	if (asked->work.seconds)
		run_long(&asked->work, asked->ways, asked->n);
	else
		for (int i = 0; i < asked->n; i++)
			run_once(&asked->work, asked->ways[i]);
}

int main(int argc, char **argv)
{
	struct asked asked = { .work = { .folios = 1, .batch = 1 } };

	if (argc == 3 && !strcmp(argv[1], "dirty"))
		dirty_for_ever(number(argv[2]) << 20);
	if (!arguments(&asked, argc, argv))
		return usage();
	prepare();
	run(&asked);
	printf("folios=%lu refused=%lu ns=%lu wrong=%lu folio=%lu offset=%lu word=0x%016lx tags=%lu tags_wrong=%lu\n",
	       seen->folios, seen->refused, seen->ns, seen->wrong, seen->folio,
	       seen->offset, seen->word, seen->tags, seen->tags_wrong);
	return 0;
}
