// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have the kernel copy hugetlb pages, and compare them with a model:
 *	bmmcopy WAY break|keep
 *	bmmcopy WAY poison FILE
 * break: a word of a copy is changed before it is compared; FILE is told the
 * PFN of a broken page.
 *
 * WAY: private-first, -middle, -last: a child writes there after fork();
 * file-first, -middle, -last: a private mapping of a shared file is written;
 * pinned: fork() of pinned memory; uffd-private, uffd-shared: UFFDIO_COPY of
 * memory that has to be faulted in. With poison also hwpoison: the page that
 * the child copies is broken by MADV_HWPOISON.
 */
#include <setjmp.h>

#include "guest.h"

#define FOLIO	(2UL << 20)
#define FOLIOS	4UL
#define BYTES	(FOLIOS * FOLIO)
#define WORDS	(FOLIO / 8)
#define WRITTEN 0x3c3c3c3c3c3c3c3cUL
#define NOWHERE WORDS
#define POISON	(77 * SMALL) /* in the first folio */

/* What all processes found. */
struct seen {
	uint64_t copies, wrong;
	int child, parent; /* si_code of their SIGBUS */
	int shift;	   /* and its extent */
	int error;	   /* errno of fork() */
};

static struct seen *seen;
static int breaks;
static const char *poison; /* file */
static uint64_t word;	   /* of each folio, that is written */

static uint64_t *huge(void)
{
	return mapped(BYTES, MAP_PRIVATE | MAP_HUGETLB, -1);
}

static void fill(uint64_t *at)
{
	store(at, BYTES / 8, 0, 0);
}

/* Counts the words that are neither the model's nor were written. */
static void compare(volatile uint64_t *at, uint64_t written)
{
	for (uint64_t i = 0; i < BYTES / 8; i++)
		seen->wrong += at[i] !=
			       (i % WORDS == written ? WRITTEN : word_at(0, i));
}

static void compare_copies(volatile uint64_t *at, uint64_t written)
{
	seen->copies += FOLIOS;
	if (breaks)
		at[3 * WORDS + WORDS / 3] ^= 1;
	compare(at, written);
}

static void write_all(volatile uint64_t *at)
{
	for (uint64_t i = 0; i < FOLIOS; i++)
		at[i * WORDS + word] = WRITTEN;
}

static sigjmp_buf out;
static int *code;

static void broken(int number, siginfo_t *info, void *context)
{
	*code = info->si_code;
	seen->shift = info->si_addr_lsb;
	siglongjmp(out, 1);
}

/* From now on a SIGBUS is noted at @to, and goes on at @out. */
static void note(int *to)
{
	struct sigaction action = { .sa_sigaction = broken,
				    .sa_flags = SA_SIGINFO };

	code = to;
	sigaction(SIGBUS, &action, NULL);
}

/* Writes to each folio, unless a SIGBUS ends it. */
static int survives(uint64_t *at, int *to)
{
	note(to);
	if (sigsetjmp(out, 1))
		return 0;
	write_all(at);
	return 1;
}

/* Tells the lab's module which page is broken from now on. */
static void break_page(const uint64_t *at)
{
	uint64_t pfn = pfn_of((const char *)at + POISON);
	FILE *to = fopen(poison, "w");

	if (!to || fprintf(to, "%lu", pfn) < 0 || fclose(to))
		err(1, "%s", poison);
	printf("pfn=%lu ", pfn);
	fflush(stdout);
}

/* After a machine check the page is taken out of use in the background. */
static void look_again(uint64_t *at)
{
	for (int i = 0; i < 100 && survives(at, &seen->parent); i++)
		usleep(50000);
}

static void after_fork(uint64_t *at)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (!child) {
		if (survives(at, &seen->child))
			compare_copies(at, word);
		_exit(0);
	}
	wait_for(child);
}

static void private(void)
{
	uint64_t *at = huge();

	fill(at);
	if (poison)
		break_page(at);
	after_fork(at);
	if (poison)
		look_again(at);
	else
		compare(at, NOWHERE);
}

static void hwpoison(void)
{
	uint64_t *at = huge();

	fill(at);
	note(&seen->error); /* as if this process had met it */
	if (!sigsetjmp(out, 1) &&
	    madvise((char *)at + POISON, SMALL, MADV_HWPOISON))
		err(1, "MADV_HWPOISON");
	after_fork(at);
	survives(at, &seen->parent);
}

static void of_file(void)
{
	int fd = memfd_of(BYTES, MFD_HUGETLB);
	uint64_t *shared = mapped(BYTES, MAP_SHARED, fd);
	uint64_t *own = mapped(BYTES, MAP_PRIVATE, fd);

	fill(shared);
	write_all(own);
	compare_copies(own, word);
	compare(shared, NOWHERE);
}

static void pinned(void)
{
	uint64_t *at = huge();
	pid_t child;

	fill(at);
	pinned_by_io_uring(at, BYTES);
	if (poison)
		break_page(at);
	child = fork();
	if (child < 0) {
		seen->error = errno;
		return;
	}
	if (!child) {
		compare_copies(at, NOWHERE);
		_exit(0);
	}
	write_all(at); /* in place: the child has copies */
	wait_for(child);
	compare(at, word);
}

/* Present nowhere, so copying under the lock fails at first. */
static void *absent_source(void)
{
	int fd = memfd_of(BYTES, 0);
	uint64_t *at = mapped(BYTES, MAP_SHARED, fd);

	fill(at);
	munmap(at, BYTES);
	return mapped(BYTES, MAP_PRIVATE, fd);
}

static void by_userfaultfd(uint64_t *at)
{
	int fd = userfaults(at, BYTES, UFFDIO_REGISTER_MODE_MISSING, 0);
	struct uffdio_copy copy = {
		.dst = (uintptr_t)at,
		.src = (uintptr_t)absent_source(),
		.len = BYTES,
	};

	IOCTL(fd, UFFDIO_COPY, &copy);
	close(fd);
	compare_copies(at, NOWHERE);
}

static void uffd_private(void)
{
	by_userfaultfd(huge());
}

static void uffd_shared(void)
{
	by_userfaultfd(mapped(BYTES, MAP_SHARED, memfd_of(BYTES, MFD_HUGETLB)));
}

static const struct way {
	const char *name;
	void (*act)(void);
	uint64_t word;
} ways[] = {
	{ "private-first", private, 3 },
	{ "private-middle", private, WORDS / 2 + 3 },
	{ "private-last", private, WORDS - 1 },
	{ "file-first", of_file, 0 },
	{ "file-middle", of_file, WORDS / 2 },
	{ "file-last", of_file, WORDS - 5 },
	{ "pinned", pinned, 0 },
	{ "uffd-private", uffd_private, 0 },
	{ "uffd-shared", uffd_shared, 0 },
	{ "hwpoison", hwpoison, 0 },
};

int main(int argc, char **argv)
{
	const struct way *way = ways, *end = ways + sizeof(ways) / sizeof(*way);

	while (argc > 2 && way < end && strcmp(way->name, argv[1]))
		way++;
	if (argc < 3 || way == end) {
		fprintf(stderr, "usage: bmmcopy WAY break|keep|poison [FILE]\n");
		return 2;
	}
	breaks = !strcmp(argv[2], "break");
	poison = argv[3];
	word = way->word;
	seen = mapped(SMALL, MAP_SHARED, -1);
	way->act();
	printf("copies=%lu wrong=%lu child=%d parent=%d shift=%d error=%d\n",
	       seen->copies, seen->wrong, seen->child, seen->parent,
	       seen->shift, seen->error);
	return 0;
}
