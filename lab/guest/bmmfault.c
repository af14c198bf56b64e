// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault huge pages in, by every way there is, and prove that a page nobody
 * has written to holds nothing but zeros. What is given back is filled with a
 * pattern first, and another such process can keep dirtying free memory, so
 * that a page that was not cleared shows.
 *
 * A folio counts only if it really is one of the wanted size: the kernel's
 * own page flags are asked, since a mapping that fell back to small pages
 * would prove nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define SMALL	   4096UL
#define DIRT	   0xa5a5a5a5a5a5a5a5UL
#define PARENT	   0x1111111111111111UL /* what a fault stores */
#define CHILD	   0x2222222222222222UL /* what a child stores to its copy */
#define CHILD_WORD 7			/* where, in the last page */
#define HUGE_SHIFT 26 /* of the size in the flags of mmap and memfd_create */

/* bits of /proc/kpageflags */
#define HEAD	(1UL << 15)
#define TAIL	(1UL << 16)
#define HUGETLB (1UL << 17)
#define THP	(1UL << 22)
#define ZERO	(1UL << 24) /* the page of zeros that readers share */

struct work {
	int hugetlb;
	uint64_t bytes;	  /* of a folio */
	uint64_t folios;  /* wanted in all */
	uint64_t batch;	  /* of them at once */
	uint64_t seconds; /* go on for so long, refusals allowed */
	int plant;	  /* leave a byte in the last folio: it must be found */
};

/* Shared with a child that proves its copy. */
static struct {
	uint64_t folios, refused, ns, wrong;
	uint64_t folio, offset, word; /* the first wrong one */
} *seen;

static int pagemap, kpageflags;

static void die(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "bmmfault: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

/* By the page: a count known to the compiler makes these two loops short. */
static void fill(uint64_t *to, uint64_t pages)
{
	for (; pages--; to += SMALL / 8)
		for (unsigned int i = 0; i < SMALL / 8; i++)
			to[i] = DIRT;
}

static int is_zero(const uint64_t *page)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < SMALL / 8; i++)
		any |= page[i];
	return !any;
}

/*
 * Free memory of the kernel is dirtied through small pages: they come from
 * everywhere, merge again when freed, and are never cleared by the function
 * that is counted here.
 */
static void dirty_for_ever(uint64_t bytes)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (;;) {
		void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			die("no memory to dirty: %s", strerror(errno));
		fill(at, bytes / SMALL);
		munmap(at, bytes);
	}
}

static uint64_t eight(int fd, uint64_t index)
{
	uint64_t value;

	/* beyond the end of memory there are no flags */
	if (pread(fd, &value, 8, index * 8) != 8)
		return 0;
	return value;
}

static uint64_t pfn_of(const char *at)
{
	/* bits 0 to 54; 0 if nothing is mapped */
	return eight(pagemap, (uintptr_t)at / SMALL) & ((1UL << 55) - 1);
}

/* Is this one folio of exactly the wanted size, mapped from its start? */
static int is_huge(const struct work *work, const char *at)
{
	uint64_t kind = work->hugetlb ? HUGETLB : THP;
	uint64_t pages = work->bytes / SMALL;
	uint64_t first = pfn_of(at);

	return first && pfn_of(at + work->bytes - SMALL) == first + pages - 1 &&
	       (eight(kpageflags, first) & (HEAD | kind | ZERO)) ==
		       (HEAD | kind) &&
	       (eight(kpageflags, first + 1) & TAIL) &&
	       (eight(kpageflags, first + pages - 1) & TAIL) &&
	       !(eight(kpageflags, first + pages) & TAIL);
}

static void note_wrong(uint64_t folio, uint64_t offset, uint64_t word)
{
	if (!seen->wrong++) {
		seen->folio = seen->folios + folio;
		seen->offset = offset;
		seen->word = word;
	}
}

/*
 * struct mark - a word that was stored
 * @at:   its place in the folio, in words
 * @word: what it holds
 */
struct mark {
	uint64_t at, word;
};

static uint64_t expected(uint64_t at, const struct mark *marks, int stored)
{
	for (int m = 0; m < stored; m++)
		if (marks[m].at == at)
			return marks[m].word;
	return 0;
}

/* Every byte of a folio is zero, save the words that were stored. */
static void prove(const struct work *work, const uint64_t *in, uint64_t folio,
		  const struct mark *marks, int stored)
{
	for (uint64_t at = 0; at < work->bytes / 8; at += SMALL / 8) {
		if (is_zero(in + at))
			continue;
		for (uint64_t i = at; i < at + SMALL / 8; i++)
			if (in[i] != expected(i, marks, stored))
				note_wrong(folio, i * 8, in[i]);
	}
	/* a page that lost its mark may look like one that never had any */
	for (int m = 0; m < stored; m++)
		if (!in[marks[m].at])
			note_wrong(folio, marks[m].at * 8, 0);
}

/*
 * struct way - a way to fault folios in
 * @name: what the user calls it
 * @page: which page is touched first: 0 the first, 1 the middle, 2 the last
 * @fd:   works on hugetlb memory behind a descriptor
 * @fault: faults a batch in; 0 if the kernel has none to give
 * @stores: leaves PARENT in each folio, at the page touched
 */
struct way {
	const char *name;
	int page;
	int fd;
	int (*fault)(const struct work *work, const struct way *way, char *at,
		     uint64_t folios);
	int stores;
	int forks;
};

static uint64_t touched_word(const struct work *work, const struct way *way)
{
	uint64_t pages = work->bytes / SMALL;
	uint64_t page = way->page == 0 ? 0 :
			way->page == 1 ? pages / 2 :
					 pages - 1;

	return (page * SMALL + 24) / 8;
}

static int touch(const struct work *work, const struct way *way, char *at,
		 uint64_t folios)
{
	uint64_t word = touched_word(work, way);

	for (uint64_t i = 0; i < folios; i++)
		*((volatile uint64_t *)(at + i * work->bytes) + word) = PARENT;
	return 1;
}

static int look(const struct work *work, const struct way *way, char *at,
		uint64_t folios)
{
	uint64_t word = touched_word(work, way);

	for (uint64_t i = 0; i < folios; i++)
		(void)*((volatile uint64_t *)(at + i * work->bytes) + word);
	return 1;
}

static int populate(const struct work *work, const struct way *way, char *at,
		    uint64_t folios)
{
	(void)way;
	if (!madvise(at, folios * work->bytes, MADV_POPULATE_WRITE))
		return 1;
	if (errno != ENOMEM && errno != EFAULT)
		die("MADV_POPULATE_WRITE: %s", strerror(errno));
	return 0;
}

/* What mmap() itself, or fallocate() before it, has done already. */
static int nothing(const struct work *work, const struct way *way, char *at,
		   uint64_t folios)
{
	(void)work, (void)way, (void)at, (void)folios;
	return 1;
}

enum {
	NO_FD,
	DEMAND_FD,
	FALLOCATE
};

static const struct way ways[] = {
	{ "write-first", 0, NO_FD, touch, 1, 0 },
	{ "write-middle", 1, NO_FD, touch, 1, 0 },
	{ "write-last", 2, NO_FD, touch, 1, 0 },
	{ "read", 1, NO_FD, look, 0, 0 },
	{ "madv-populate", 0, NO_FD, populate, 0, 0 },
	{ "map-populate", 0, NO_FD, nothing, 0, 0 },
	{ "fork", 1, NO_FD, touch, 1, 1 },
	{ "memfd", 1, DEMAND_FD, touch, 1, 0 },
	{ "fallocate", 0, FALLOCATE, nothing, 0, 0 },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static int is_map_populate(const struct way *way)
{
	return !strcmp(way->name, "map-populate");
}

/*
 * MAP_POPULATE comes before any madvise() can: for that moment every process
 * may have folios of this size. No other one maps new memory meanwhile but the
 * one that dirties memory, which has opted out.
 */
static void policy(const struct work *work, const char *word)
{
	char file[96];
	int fd;

	snprintf(file, sizeof(file),
		 "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/enabled",
		 work->bytes / 1024);
	fd = open(file, O_WRONLY);
	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		die("%s: %s", file, strerror(errno));
	close(fd);
}

static int log2_of(uint64_t bytes)
{
	return 63 - __builtin_clzl(bytes);
}

/* A descriptor of hugetlb memory, -1 if the pool has not enough. */
static int huge_file(const struct work *work, const struct way *way,
		     uint64_t bytes)
{
	unsigned int flags = MFD_HUGETLB | log2_of(work->bytes) << HUGE_SHIFT;
	int fd = memfd_create("bmmfault", flags);
	uint64_t start = now();

	if (fd < 0 || ftruncate(fd, bytes))
		die("memfd_create: %s", strerror(errno));
	if (way->fd == FALLOCATE && fallocate(fd, 0, 0, bytes)) {
		close(fd);
		return -1;
	}
	if (way->fd == FALLOCATE)
		seen->ns += now() - start;
	return fd;
}

static char *map_at(const struct work *work, const struct way *way, char *at,
		    uint64_t bytes)
{
	int flags = MAP_FIXED | (way->fd ? MAP_SHARED : MAP_PRIVATE);
	int fd = -1;
	char *got;

	if (way->fd) {
		fd = huge_file(work, way, bytes);
		if (fd < 0)
			return MAP_FAILED;
	} else {
		flags |= MAP_ANONYMOUS;
		if (work->hugetlb)
			flags |= MAP_HUGETLB | log2_of(work->bytes)
						       << HUGE_SHIFT;
	}
	if (is_map_populate(way))
		flags |= MAP_POPULATE;
	got = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return got;
}

/* Map a batch at an aligned address; MAP_FAILED if there is no room for it. */
static char *map(const struct work *work, const struct way *way, char *at,
		 uint64_t bytes)
{
	int open_to_all = is_map_populate(way) && !work->hugetlb;
	uint64_t start;
	char *got;

	if (open_to_all)
		policy(work, "always");
	start = now();
	got = map_at(work, way, at, bytes);
	if (is_map_populate(way))
		seen->ns += now() - start;
	if (open_to_all)
		policy(work, "madvise");
	if (got != MAP_FAILED && !work->hugetlb &&
	    madvise(got, bytes, MADV_HUGEPAGE))
		die("MADV_HUGEPAGE: %s", strerror(errno));
	return got;
}

/* How many folios of the batch are what was wanted. */
static uint64_t huge_ones(const struct work *work, const char *at,
			  uint64_t folios)
{
	uint64_t huge = 0;

	for (uint64_t i = 0; i < folios; i++)
		huge += is_huge(work, at + i * work->bytes);
	return huge;
}

static void prove_all(const struct work *work, const char *at, uint64_t folios,
		      const struct mark *marks, int stored)
{
	for (uint64_t i = 0; i < folios; i++)
		prove(work, (const uint64_t *)(at + i * work->bytes), i, marks,
		      stored);
}

/*
 * A child sees what its parent stored and zeros, stores to its own copy, and
 * the parent's folios stay as they were.
 */
static void prove_forked(const struct work *work, char *at, uint64_t folios,
			 const struct mark *parent)
{
	uint64_t in_last = (work->bytes - SMALL) / 8 + CHILD_WORD;
	struct mark both[] = { *parent, { in_last, CHILD } };
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		prove_all(work, at, folios, parent, 1);
		for (uint64_t i = 0; i < folios; i++)
			((uint64_t *)(at + i * work->bytes))[in_last] = CHILD;
		prove_all(work, at, folios, both, 2);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the child did not end as it should: status %d", status);
	prove_all(work, at, folios, parent, 1);
}

static void prove_batch(const struct work *work, const struct way *way,
			char *at, uint64_t folios)
{
	struct mark mark = { touched_word(work, way), PARENT };

	if (way->forks)
		prove_forked(work, at, folios, &mark);
	else
		prove_all(work, at, folios, &mark, way->stores);
}

/* A batch that is mapped: returns how many folios it proved. */
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
		die("%s: only %lu of %lu folios are of %lu KiB", way->name,
		    huge, folios, work->bytes / 1024);
	if (work->plant)
		at[folios * work->bytes - 1] = 1;
	prove_batch(work, way, at, folios);
	fill((uint64_t *)at, folios * work->bytes / SMALL);
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
		die("no address space: %s", strerror(errno));
	at &= ~(work->bytes - 1);
	if (map(work, way, (char *)at, bytes) != MAP_FAILED)
		proved = mapped_batch(work, way, (char *)at, folios);
	else if (!work->seconds)
		die("%s: no memory for %lu folios: %s", way->name, folios,
		    strerror(errno));
	munmap(room, bytes + 2 * work->bytes);
	return proved;
}

static void count(uint64_t wanted, uint64_t proved)
{
	seen->folios += proved;
	seen->refused += wanted - proved;
}

/* A number of folios by one way. */
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

/* By all the ways named, in turn, until time is up. */
static void run_long(const struct work *work, const struct way *const *chosen,
		     int n)
{
	uint64_t end = now() + work->seconds * 1000000000UL;

	for (int i = 0; now() < end; i = (i + 1) % n) {
		uint64_t proved = one_batch(work, chosen[i], work->batch);

		count(work->batch, proved);
		if (!proved)
			usleep(1000);
	}
}

static const struct way *way_named(const char *name, int hugetlb)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, name) && (hugetlb || !ways[i].fd))
			return &ways[i];
	die("no way %s", name);
	return NULL;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bmmfault dirty MIB: so much memory, again and again\n"
		"       bmmfault [-n FOLIOS] [-b BATCH] [-t SECONDS] [-p]\n"
		"                thp|hugetlb KIB WAY...\n"
		"  -n how many folios; -b so many at once\n"
		"  -t go on for so long; that there are no huge pages is no failure\n"
		"  -p leave a byte in the last folio, which must be found\n"
		"  WAY:");
	for (unsigned int i = 0; i < WAYS; i++)
		fprintf(stderr, " %s", ways[i].name);
	fprintf(stderr, "\n");
	return 2;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

struct asked {
	struct work work;
	const struct way *ways[WAYS];
	int n;
};

/* Returns 0 if the options make no sense. */
static int options(struct asked *asked, int argc, char **argv)
{
	struct work *work = &asked->work;
	int option;

	while ((option = getopt(argc, argv, "n:b:t:p")) != -1) {
		if (option == 'n')
			work->folios = number(optarg);
		else if (option == 'b')
			work->batch = number(optarg);
		else if (option == 't')
			work->seconds = number(optarg);
		else if (option == 'p')
			work->plant = 1;
		else
			return 0;
	}
	return work->batch > 0;
}

static int arguments(struct asked *asked, int argc, char **argv)
{
	struct work *work = &asked->work;

	if (!options(asked, argc, argv) || argc - optind < 3 ||
	    argc - optind - 2 > (int)WAYS)
		return 0;
	work->hugetlb = !strcmp(argv[optind], "hugetlb");
	work->bytes = number(argv[optind + 1]) * 1024;
	for (int i = optind + 2; i < argc; i++)
		asked->ways[asked->n++] = way_named(argv[i], work->hugetlb);
	return work->bytes >= 2 * SMALL && !(work->bytes & (work->bytes - 1));
}

static void prepare(void)
{
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	kpageflags = open("/proc/kpageflags", O_RDONLY);
	if (pagemap < 0 || kpageflags < 0)
		die("no page flags: %s", strerror(errno));
	seen = mmap(NULL, SMALL, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		die("no memory: %s", strerror(errno));
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
	printf("folios=%lu refused=%lu ns=%lu wrong=%lu folio=%lu offset=%lu word=0x%016lx\n",
	       seen->folios, seen->refused, seen->ns, seen->wrong, seen->folio,
	       seen->offset, seen->word);
	return 0;
}
