// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes hugetlb pages of 2 MiB, in every way there is, and frees them dirty:
 *
 *	bmmzero WAY PAGES            by one way
 *	bmmzero churn TOTAL BATCH    by one after another, until TOTAL have been
 *	                             seen
 *
 * and prints how many of those that it looked at were not zero.
 * What is taken by a fault is looked at first: a word of each 4 KiB, at a place
 * that all of these programs dirty.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "guest.h"

#define HUGE	     (2UL << 20)
#define SMALL	     4096UL
#define WORD	     3 /* of each 4 KiB, in words of 8 bytes */
#define DIRT	     0xa5
#define LOG_OF_HUGE  26
#define SOFT_OFFLINE 101 /* MADV_SOFT_OFFLINE */
#define BROKEN	     100 /* MADV_HWPOISON */
#define MOVE_ALL     4	 /* MPOL_MF_MOVE_ALL */

static unsigned long seen, wrong;

static void look(const char *at, size_t len)
{
	for (size_t page = 0; page < len; page += HUGE) {
		int dirty = 0;

		for (size_t i = page; i < page + HUGE; i += SMALL)
			dirty |= ((volatile const uint64_t *)(at + i))[WORD] !=
				 0;
		seen++;
		wrong += (unsigned long)dirty;
	}
}

static void dirty(char *at, size_t len)
{
	for (size_t i = 0; i < len; i += SMALL)
		((volatile uint64_t *)(at + i))[WORD] = DIRT;
}

static int file_of(size_t len)
{
	return memfd_of(len, MFD_HUGETLB | 21U << LOG_OF_HUGE);
}

static char *map(size_t len, int fd, int flags)
{
	flags |= fd < 0 ? MAP_HUGETLB | 21 << LOG_OF_HUGE : 0;
	return mapped(len, flags, fd);
}

static void use(char *at, size_t len)
{
	look(at, len);
	dirty(at, len);
}

static void use_private(size_t len)
{
	use(map(len, -1, MAP_PRIVATE), len);
}

static void use_noreserve(size_t len)
{
	use(map(len, -1, MAP_PRIVATE | MAP_NORESERVE), len);
}

/* Reserves them until it is killed. */
static void use_nothing(size_t len)
{
	map(len, -1, MAP_SHARED);
	pause();
}

static void use_shared(size_t len)
{
	use(map(len, file_of(len), MAP_SHARED), len);
}

/* The child's copies are taken from the pool, and never cleared. */
static void use_fork(size_t len)
{
	char *at = map(len, -1, MAP_PRIVATE | MAP_NORESERVE);
	pid_t child;

	use(at, len / 2);
	child = fork();
	if (!child) {
		dirty(at, len / 2);
		_exit(0);
	}
	wait_for(child);
}

/* Copies of a file's pages likewise. */
static void use_cow(size_t len)
{
	int fd = file_of(len / 2);

	use(map(len / 2, fd, MAP_SHARED), len / 2);
	dirty(map(len / 2, fd, MAP_PRIVATE), len / 2);
}

static void use_punch(size_t len)
{
	int fd = file_of(len);

	use(map(len, fd, MAP_SHARED), len);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)len))
		err(1, "hole");
	use(map(len, fd, MAP_SHARED), len);
	if (ftruncate(fd, 0))
		err(1, "truncate");
}

static void use_dontneed(size_t len)
{
	char *at = map(len, -1, MAP_PRIVATE);

	for (int i = 0; i < 2; i++) {
		use(at, len);
		if (madvise(at, len, MADV_DONTNEED))
			err(1, "MADV_DONTNEED");
	}
}

/* Pages that a pipe holds when nobody maps them any more. */
static void use_pinned(size_t len)
{
	char *at = map(len, -1, MAP_PRIVATE);
	int pipes[2];

	use(at, len);
	if (pipe(pipes))
		err(1, "pipe");
	for (size_t i = 0; i < len; i += HUGE) {
		struct iovec one = { at + i, SMALL };

		if (i / HUGE < 8 && vmsplice(pipes[1], &one, 1, 0) < 0)
			err(1, "vmsplice");
	}
	munmap(at, len);
}

/* Each page to the other node, if there is one, and back. */
static void use_move(size_t len)
{
	char *at = map(len / 2, -1, MAP_PRIVATE);

	use(at, len / 2);
	for (int node = 1; node >= 0; node--)
		for (size_t i = 0; i < len / 2; i += HUGE) {
			void *page = at + i;
			int status;

			syscall(SYS_move_pages, 0, 1UL, &page, &node, &status,
				MOVE_ALL);
		}
}

static void use_copy(size_t len)
{
	char *at = map(len, -1, MAP_PRIVATE);
	int fd = userfaults(at, len, UFFDIO_REGISTER_MODE_MISSING, 0);
	char *from = aligned_alloc(SMALL, HUGE);

	memset(from, DIRT, HUGE);
	for (size_t i = 0; i < len; i += HUGE) {
		struct uffdio_copy copy = { .dst = (uintptr_t)at + i,
					    .src = (uintptr_t)from,
					    .len = HUGE };

		IOCTL(fd, UFFDIO_COPY, &copy);
	}
}

static void use_continue(size_t len)
{
	int file = file_of(len);
	char *at = map(len, file, MAP_SHARED),
	     *other = map(len, file, MAP_SHARED);
	int fd = userfaults(other, len, UFFDIO_REGISTER_MODE_MINOR,
			    UFFD_FEATURE_MINOR_HUGETLBFS);
	struct uffdio_continue all = { .range = { (uintptr_t)other, len } };

	use(at, len);
	IOCTL(fd, UFFDIO_CONTINUE, &all);
	dirty(other, len);
}

static void on_broken(int number)
{
	(void)number; /* the page was broken on purpose: nothing to do */
}

static void break_one(size_t len, int how)
{
	char *at = map(len / 2, -1, MAP_PRIVATE);

	signal(SIGBUS, on_broken);
	use(at, len / 2);
	if (madvise(at, SMALL, how))
		err(1, "madvise");
	if (how == SOFT_OFFLINE)
		dirty(at, len / 2);
}

static void use_soft_offline(size_t len)
{
	break_one(len, SOFT_OFFLINE);
}

static void use_broken(size_t len)
{
	break_one(len, BROKEN);
}

static const struct way {
	const char *name;
	void (*use)(size_t len);
	int churns; /* can be repeated for ever */
} ways[] = {
	{ "private", use_private, 1 },
	{ "noreserve", use_noreserve, 1 },
	{ "shared", use_shared, 1 },
	{ "fork", use_fork, 1 },
	{ "cow", use_cow, 1 },
	{ "punch", use_punch, 1 },
	{ "dontneed", use_dontneed, 1 },
	{ "pinned", use_pinned, 1 },
	{ "move", use_move, 1 },
	{ "copy", use_copy, 1 },
	{ "continue", use_continue, 1 },
	{ "soft-offline", use_soft_offline, 0 },
	{ "broken", use_broken, 0 },
	{ "reserve", use_nothing, 0 },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

/*
 * In a process of its own, which frees all it had by ending; one that the pool
 * has too little for is killed, or gives up.
 */
static void churn_once(const struct way *way, size_t len)
{
	unsigned long told[2];
	int pipes[2];

	if (pipe(pipes))
		err(1, "pipe");
	if (!fork()) {
		seen = wrong = 0;
		freopen("/dev/null", "w", stderr);
		way->use(len);
		told[0] = seen, told[1] = wrong;
		_exit(write(pipes[1], told, sizeof(told)) != sizeof(told));
	}
	close(pipes[1]);
	if (read(pipes[0], told, sizeof(told)) == sizeof(told)) {
		seen += told[0];
		wrong += told[1];
	}
	close(pipes[0]);
	wait(NULL);
}

static void churn(unsigned long total, unsigned long batch)
{
	for (unsigned long i = 0; seen < total; i++)
		if (ways[i % WAYS].churns)
			churn_once(&ways[i % WAYS], batch * HUGE);
}

int main(int argc, char **argv)
{
	size_t i = 0;

	if (argc == 4 && !strcmp(argv[1], "churn")) {
		churn(strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0));
	} else {
		while (argc == 3 && i < WAYS && strcmp(ways[i].name, argv[1]))
			i++;
		if (argc != 3 || i == WAYS)
			return 2;
		ways[i].use(strtoul(argv[2], NULL, 0) * HUGE);
	}
	printf("pages=%lu wrong=%lu\n", seen, wrong);
	return 0;
}
