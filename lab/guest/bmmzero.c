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

#include "guest.h"

#define HUGE	     (2UL << 20)
#define WORD	     3 /* of each 4 KiB, in words of 8 bytes */
#define DIRT	     0xa5
#define SOFT_OFFLINE 101 /* MADV_SOFT_OFFLINE */

/* What all processes found. */
static struct seen {
	unsigned long pages, wrong;
} *seen;

static void look(const char *at, size_t len)
{
	for (size_t page = 0; page < len; page += HUGE) {
		int dirty = 0;

		for (size_t i = page; i < page + HUGE; i += SMALL)
			dirty |= ((volatile const uint64_t *)(at + i))[WORD] !=
				 0;
		seen->pages++;
		seen->wrong += (unsigned long)dirty;
	}
}

static void dirty(char *at, size_t len)
{
	for (size_t i = 0; i < len; i += SMALL)
		((volatile uint64_t *)(at + i))[WORD] = DIRT;
}

static int file_of(size_t len)
{
	return memfd_of(len, MFD_HUGETLB | MAP_HUGE_2MB);
}

static char *map(size_t len, int fd, int flags)
{
	return mapped(len, flags | (fd < 0 ? MAP_HUGETLB | MAP_HUGE_2MB : 0),
		      fd);
}

static void use(char *at, size_t len)
{
	look(at, len);
	dirty(at, len);
}

static void use_private(size_t len, int flags)
{
	use(map(len, -1, MAP_PRIVATE | flags), len);
}

/* Reserves them until it is killed. */
static void use_nothing(size_t len, int with)
{
	map(len, -1, MAP_SHARED);
	pause();
}

static void use_shared(size_t len, int with)
{
	use(map(len, file_of(len), MAP_SHARED), len);
}

/* The child's copies are taken from the pool, and never cleared. */
static void use_fork(size_t len, int with)
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
static void use_cow(size_t len, int with)
{
	int fd = file_of(len / 2);

	use(map(len / 2, fd, MAP_SHARED), len / 2);
	dirty(map(len / 2, fd, MAP_PRIVATE), len / 2);
}

static void use_punch(size_t len, int with)
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

static void use_dontneed(size_t len, int with)
{
	char *at = map(len, -1, MAP_PRIVATE);

	for (int i = 0; i < 2; i++) {
		use(at, len);
		if (madvise(at, len, MADV_DONTNEED))
			err(1, "MADV_DONTNEED");
	}
}

/* Pages that a pipe holds when nobody maps them any more. */
static void use_pinned(size_t len, int with)
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
static void use_move(size_t len, int with)
{
	char *at = map(len / 2, -1, MAP_PRIVATE);

	use(at, len / 2);
	for (int node = 1; node >= 0; node--)
		for (size_t i = 0; i < len / 2; i += HUGE) {
			void *page = at + i;
			int status;

			syscall(SYS_move_pages, 0, 1UL, &page, &node, &status,
				MPOL_MF_MOVE_ALL);
		}
}

static void use_copy(size_t len, int with)
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

static void use_continue(size_t len, int with)
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

/* @advice: breaks a page */
static void use_broken(size_t len, int advice)
{
	char *at = map(len / 2, -1, MAP_PRIVATE);

	signal(SIGBUS, ignored);
	use(at, len / 2);
	if (madvise(at, SMALL, advice))
		err(1, "madvise");
	if (advice == SOFT_OFFLINE)
		dirty(at, len / 2);
}

static const struct way {
	const char *name;
	void (*use)(size_t len, int with);
	int churns; /* can be repeated for ever */
	int with;
} ways[] = {
	{ "private", use_private, .churns = 1 },
	{ "noreserve", use_private, .churns = 1, .with = MAP_NORESERVE },
	{ "shared", use_shared, .churns = 1 },
	{ "fork", use_fork, .churns = 1 },
	{ "cow", use_cow, .churns = 1 },
	{ "punch", use_punch, .churns = 1 },
	{ "dontneed", use_dontneed, .churns = 1 },
	{ "pinned", use_pinned, .churns = 1 },
	{ "move", use_move, .churns = 1 },
	{ "copy", use_copy, .churns = 1 },
	{ "continue", use_continue, .churns = 1 },
	{ "soft-offline", use_broken, .with = SOFT_OFFLINE },
	{ "broken", use_broken, .with = MADV_HWPOISON },
	{ "reserve", use_nothing, .churns = 0 },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

/*
 * Each in a process of its own, which frees all it had by ending; one that the
 * pool has too little for is killed, or gives up.
 */
static void churn(unsigned long total, unsigned long batch)
{
	for (const struct way *way = ways; seen->pages < total; way++) {
		if (way == ways + WAYS)
			way = ways;
		if (way->churns && !fork()) {
			freopen("/dev/null", "w", stderr);
			way->use(batch * HUGE, way->with);
			_exit(0);
		}
		wait(NULL);
	}
}

int main(int argc, char **argv)
{
	size_t i = 0;

	seen = mapped(sizeof(*seen), MAP_SHARED, -1);
	if (argc == 4 && !strcmp(argv[1], "churn")) {
		churn(number(argv[2]), number(argv[3]));
	} else {
		while (argc == 3 && i < WAYS && strcmp(ways[i].name, argv[1]))
			i++;
		if (argc != 3 || i == WAYS)
			return 2;
		ways[i].use(number(argv[2]) * HUGE, ways[i].with);
	}
	printf("pages=%lu wrong=%lu\n", seen->pages, seen->wrong);
	return 0;
}
