// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault huge pages in, by every way there is, and prove that a page nobody has
 * written to holds only zeros. Memory is filled with a pattern before it is
 * freed, and another such process can keep dirtying free memory, so that a page
 * that was not cleared shows.
 *
 * A folio counts only if it has the requested size according to the kernel's
 * page flags: a mapping that fell back to small pages would prove nothing.
 *
 * On arm64 memory tags (MTE) are proved, too: four bits for every 16 bytes,
 * stored beside the data and not cleared with it.
 *
 * Hugetlb pages can be copied, moved, broken or given up before they are freed,
 * which they always are full of the pattern.
 */
#include "fault_proof.h"
#include "fault_ways.h"

#define THP "/sys/kernel/mm/transparent_hugepage"

/*
 * MAP_POPULATE acts before any madvise() can: for that moment every process may
 * have folios of this size. The only other one that maps new memory meanwhile
 * dirties memory, and has opted out.
 */
static void policy(const char *word)
{
	char file[96];
	int fd;

	snprintf(file, sizeof(file), THP "/hugepages-%lukB/enabled",
		 work.bytes / 1024);
	if (work.bytes == 2 << 20 && access(file, F_OK)) /* 6.1 */
		strcpy(file, THP "/enabled");
	fd = opened(file, O_WRONLY);
	if (write(fd, word, strlen(word)) < 0)
		err(1, "%s", file);
	close(fd);
}

/* Makes the file that a batch is of; 0 if the pool has too little. */
static int make_file(const struct way *way, uint64_t bytes, unsigned int size)
{
	file = memfd_of(bytes, MFD_HUGETLB | size);
	if (way->fault)
		return 1;
	begin();
	if (fallocate(file, 0, 0, (off_t)bytes))
		return 0;
	end();
	return 1;
}

static char *map_at(const struct way *way, char *at, uint64_t bytes)
{
	unsigned int size = (unsigned int)__builtin_ctzl(work.bytes)
			    << MAP_HUGE_SHIFT;
	int flags = MAP_FIXED | way->flags;

	if (way->of_file && !make_file(way, bytes, size))
		return MAP_FAILED;
	if (way->of_file)
		flags |= MAP_SHARED;
	else
		flags |= MAP_PRIVATE | MAP_ANONYMOUS |
			 (work.hugetlb ? MAP_HUGETLB | (int)size : 0) |
			 (work.unreserved ? MAP_NORESERVE : 0);
	return mmap(at, bytes, PROT_READ | PROT_WRITE | tags_prot(), flags,
		    file, 0);
}

/* Map a batch at an aligned address; MAP_FAILED if there is no room for it. */
static char *map(const struct way *way, char *at, uint64_t bytes)
{
	int populates = way->flags & MAP_POPULATE;
	int open_to_all = populates && !work.hugetlb;
	char *got;

	if (open_to_all)
		policy("always");
	if (populates)
		begin();
	got = map_at(way, at, bytes);
	if (populates)
		end();
	if (open_to_all)
		policy("madvise");
	if (got != MAP_FAILED && !work.hugetlb &&
	    madvise(got, bytes, MADV_HUGEPAGE))
		err(1, "MADV_HUGEPAGE");
	return got;
}

/* Proves a mapped batch; returns how many folios of it count. */
static uint64_t mapped_batch(const struct way *way, char *at, uint64_t folios,
			     int plant)
{
	uint64_t huge;
	int given = 1;

	if (way->fault) {
		begin();
		given = way->fault(way, at, folios);
		end();
	}
	if (!given)
		return 0;
	if (work.unreserved)
		seen->faults += faults_of_writes(at, folios * work.bytes);
	if (way->of_file && !way->stores) /* there, and not mapped yet */
		look(way, at, folios);
	huge = huge_ones(at, folios);
	if (huge != folios && !work.seconds)
		errx(1, "%s: only %lu of %lu folios are of %lu KiB", way->name,
		     huge, folios, work.bytes / 1024);
	if (work.faults_only)
		return huge;
	if (plant) {
		at[folios * work.bytes - 1] = 1;
		tag(at + folios * work.bytes - GRANULE, GRANULE);
	}
	prove_batch(at, folios, touched_word(way), way->stores, way->forks);
	fill(at, folios * work.bytes / SMALL);
	tag(at, folios * work.bytes);
	if (way->after)
		way->after(way, at, folios * work.bytes);
	return huge;
}

/* Returns how many folios of a batch count. */
static uint64_t one_batch(const struct way *way, uint64_t folios, int plant)
{
	uint64_t bytes = folios * work.bytes, proved = 0;
	/* room to align it, and no other mapping close to it to merge with */
	char *room = mmap(NULL, bytes + 2 * work.bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((uintptr_t)room + work.bytes - 1) & -work.bytes);

	if (room == MAP_FAILED)
		err(1, "no address space");
	if (map(way, at, bytes) != MAP_FAILED)
		proved = mapped_batch(way, at, folios, plant);
	else if (!work.seconds)
		err(1, "%s: no memory for %lu folios", way->name, folios);
	unmap(room, bytes + 2 * work.bytes);
	seen->folios += proved;
	seen->refused += folios - proved;
	return proved;
}

static int over(uint64_t end)
{
	if (!work.seconds)
		return seen->folios >= work.folios;
	return now() >= end && (!work.until || !access(work.until, F_OK));
}

/* A process for which the pool has too little is killed, or gives up. */
static void one_batch_apart(const struct way *way, uint64_t folios, int plant)
{
	if (!fork()) {
		freopen("/dev/null", "w", stderr);
		one_batch(way, folios, plant);
		_exit(0);
	}
	wait(NULL);
}

/* Faults folios in by all named ways in turn, a batch at a time. */
static void run(const struct way *const *chosen, int n)
{
	uint64_t end = now() + work.seconds * 1000000000UL;

	for (int i = 0; !over(end); i = (i + 1) % n) {
		uint64_t left = work.folios - seen->folios;
		int last = !work.seconds && left <= work.batch;
		uint64_t folios = last ? left : work.batch;

		if (work.apart)
			one_batch_apart(chosen[i], folios, work.plant && last);
		else if (!one_batch(chosen[i], folios, work.plant && last))
			usleep(1000);
	}
}

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
		void *at = mapped(bytes, MAP_PRIVATE, -1);

		fill(at, bytes / SMALL);
		munmap(at, bytes);
		usleep((useconds_t)((now() - start) / 1000) * 2);
	}
}

/* [OPTION...] thp|hugetlb KIB WAY..., see struct work; returns 0 if it is not that. */
static int options(int argc, char **argv)
{
	static uint64_t *const numbers[] = {
		['n'] = &work.folios,
		['b'] = &work.batch,
		['t'] = &work.seconds,
	};
	static int *const flags[] = {
		['p'] = &work.plant,  ['f'] = &work.faults_only,
		['m'] = &work.tagged, ['c'] = &work.unreserved,
		['k'] = &work.apart,
	};
	int option;

	while ((option = getopt(argc, argv, "n:b:t:u:pfmck")) != -1) {
		if (option == '?')
			return 0;
		if (option == 'u')
			work.until = optarg;
		else if (optarg)
			*numbers[option] = number(optarg);
		else
			*flags[option] = 1;
	}
	if (!work.batch || argc - optind < 3 || argc - optind - 2 > (int)WAYS)
		return 0;
	work.hugetlb = !strcmp(argv[optind], "hugetlb");
	work.bytes = number(argv[optind + 1]) * 1024;
	return work.bytes >= 2 * SMALL && !(work.bytes & (work.bytes - 1));
}

int main(int argc, char **argv)
{
	const struct way *chosen[WAYS];
	int n = 0;

	if (argc == 3 && !strcmp(argv[1], "dirty"))
		dirty_for_ever(number(argv[2]) << 20);
	if (!options(argc, argv))
		errx(2,
		     "usage: bmmfault dirty MIB, or [-n FOLIOS] [-b BATCH] "
		     "[-t SECONDS] [-u FILE] [-p|-f] [-m] [-c] [-k] thp|hugetlb KIB WAY...");
	for (int i = optind + 2; i < argc; i++)
		chosen[n++] = way_named(argv[i]);
	seen = mapped(SMALL, MAP_SHARED, -1);
	run(chosen, n);
	printf("folios=%lu refused=%lu ns=%lu", seen->folios, seen->refused,
	       seen->ns);
	if (!work.faults_only)
		printf(" wrong=%lu folio=%lu offset=%lu word=0x%016lx tags=%lu tags_wrong=%lu",
		       seen->wrong, seen->folio, seen->offset, seen->word,
		       seen->tags, seen->tags_wrong);
	if (work.unreserved)
		printf(" faults=%lu free_ns=%lu", seen->faults, seen->free_ns);
	putchar('\n');
	return 0;
}
