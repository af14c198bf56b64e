// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A program that knows nothing of bulkmm: bmm-preloaded results|hot|served|
 * before-6.11|left FILE|thread|interrupted|old. It prints what became of each
 * call, or of its first one, which must be the same with the preload; or, with
 * the kernel's own way barred, whether memory was populated all the same,
 * before Linux 6.11 too; or what a thread sees of it that has the least of
 * stacks, and is cancelled; or that it ends, though signals interrupt its
 * malloc(); or the errno that a successful call leaves before Linux 5.14.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "memory.h"

#define READ  22 /* MADV_POPULATE_ */
#define WRITE 23

/* Percent of the pages that are there for a write, or for a read. */
static size_t there(char *p, size_t len, bool write)
{
	size_t missing = (size_t)faults_of(p, len, write) * 100 / (len / PAGE);

	return missing > 100 ? 0 : 100 - missing; /* two each, even */
}

/* The same without a fault, for huge pages. */
static size_t resident(char *p, size_t len)
{
	static unsigned char pages[96 * MIB / PAGE];
	size_t i, sum = 0;

	if (mincore(p, len, pages))
		return 0;
	for (i = 0; i < len / PAGE; i++)
		sum += pages[i] & 1;
	return sum * 100 / (len / PAGE);
}

static void said(const char *what, size_t len, int result)
{
	printf("%s %zu: %d %s\n", what, len / MIB, result, strerror(errno));
	errno = 0;
}

static void locked(void)
{
	const char *line = strstr(text_of("/proc/self/status"), "VmLck:");

	if (line)
		printf("%.*s\n", (int)strcspn(line, "\n"), line);
}

static void lock(const char *what, char *p, size_t len)
{
	said(what, len, mlock(p, len));
	locked();
	munmap(p, len);
}

static void locks(size_t len)
{
	struct rlimit little = { 65 * MIB, 65 * MIB };
	char *p = anonymous(len);

	said("mlock", len, mlock(p + 100, len - 200));
	printf("there: %zu %%\n", there(p, len, true));
	locked();
	munlock(p, len);
	said("mlock2", len, mlock2(p, len, 1));
	locked();
	munmap(p, len);
	lock("mlock shared", map(len, MAP_SHARED, memfd(len)), len);
	lock("mlock removed", map(len, MAP_SHARED, removed(len)), len);
	p = try_map(len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	lock("mlock nothing", p, len);
	lock("mlock hole", p, len);
	said("mlock wraps", len, mlock((char *)64, SIZE_MAX));
	lock("mlock beyond", map(len, MAP_SHARED, memfd(len / 2)), len);
	p = anonymous(len);
	if (!getuid() && seteuid(65534))
		return;
	setrlimit(RLIMIT_MEMLOCK, &little);
	said("mlock limited", len, mlock(p, len));
	printf("there: %d\n", there(p, len, true) > 50);
	locked();
	if (!getuid() && seteuid(0))
		return;
	munmap(p, len);
}

static void advises(size_t len)
{
	char *p = anonymous(len);

	said("write", len, madvise(p, len, WRITE));
	printf("there: %zu %%\n", there(p, len, true));
	said("misaligned", len, madvise(p + 8, len, WRITE));
	said("odd", len, madvise(p, len - 8, WRITE));
	munmap(p + len / 2, PAGE);
	said("hole", len, madvise(p, len, WRITE));
	munmap(p, len);
	p = try_map(len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	said("protected", len, madvise(p, len, WRITE));
	said("read", len, madvise(p, len, READ));
	printf("there: %zu %%\n", there(p, len, false));
	said("other", len, madvise(p, len, MADV_DONTNEED));
	said("unknown", len, madvise(p, len, 12345));
	munmap(p, len);
	p = map(len, MAP_SHARED, memfd(len / 2));
	said("beyond", len, madvise(p, len, WRITE));
	munmap(p, len);
}

/* What may not be read, or written, is made as well. */
static void one(size_t len, int prot, int flags, int fd)
{
	char *p = try_map(len, prot, flags | MAP_POPULATE, fd);
	bool both = prot == (PROT_READ | PROT_WRITE);

	printf("allowed %d: ", prot);
	said("mapped", len, p != MAP_FAILED);
	if (p == MAP_FAILED || (!both && mprotect(p, len, PROT_READ)))
		return;
	printf("populated: %zu %%\n", there(p, len, both));
	munmap(p, len);
}

/* Nothing else can be mapped any more. */
static void no_room(size_t len)
{
	struct rlimit before, limit;
	unsigned long pages = strtoul(text_of("/proc/self/statm"), NULL, 10);
	char *p;

	getrlimit(RLIMIT_AS, &before);
	limit = before;
	limit.rlim_cur = pages * PAGE + len;
	setrlimit(RLIMIT_AS, &limit);
	p = try_map(len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
	setrlimit(RLIMIT_AS, &before);
	printf("no room: %d\n", p == MAP_FAILED);
	printf("populated: %zu %%\n", there(p, len, true));
	munmap(p, len);
}

static void maps(size_t len)
{
	const int own = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = map(len, MAP_SHARED | MAP_POPULATE, memfd(len / 2));

	printf("populated: %zu %%\n", there(p, len / 2, true));
	munmap(p, len);
	p = try_anonymous(len, MAP_POPULATE | MAP_NONBLOCK);
	printf("not now: %d\n", there(p, len, true) < 10);
	munmap(p, len);
	one(len, PROT_READ | PROT_WRITE, own, -1);
	one(len, PROT_NONE, own, -1);
	one(0, PROT_READ, own, -1);
	one(len, PROT_READ, MAP_SHARED, -1);
	one(len, PROT_WRITE, MAP_SHARED, memfd(len));
	one(len, PROT_WRITE, own, -1);
	one(len, PROT_EXEC, own, -1);
	one(len, PROT_READ, MAP_SHARED, memfd(len));
	no_room(len);
	errno = 77;
	p = try_anonymous(len, MAP_POPULATE);
	printf("errno: %d\n", errno);
	munmap(p, len);
}

/* Of transparent huge pages, if there are any here. */
static char *huge(size_t len)
{
	char *p = map(len + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p += -(uintptr_t)p & (2 * MIB - 1);
	madvise(p, len, MADV_HUGEPAGE);
	return p;
}

/* In memory, but not mapped; nor is all of the code that maps it. */
static void hot(void)
{
	size_t len = 96 * MIB;
	int fd = memfd(len);
	char *p = map(len, MAP_SHARED, dup(fd));

	memset(p, 1, len);
	munmap(p, len);
	p = map(len, MAP_SHARED | MAP_POPULATE, fd);
	printf("populated: %zu %%\n", there(p, len, true));
}

/* The kernel's own way is barred for large ranges; so who has populated them? */
static void served(void)
{
	size_t len = 96 * MIB;
	char *p;

	forbid(SYS_mmap, 3, MAP_POPULATE, MAP_POPULATE, 0, EPERM);
	forbid(SYS_madvise, 2, 16, 16, 64 * MIB, EPERM); /* 22 and 23 */
	forbid(SYS_mlock, 1, 0, 0, 64 * MIB, 0);
	p = try_anonymous(len, MAP_POPULATE);
	printf("mmap: %d\n", p != MAP_FAILED && there(p, len, true) > 98);
	p = anonymous(len);
	printf("madvise: %d\n",
	       !madvise(p, len, WRITE) && there(p, len, true) > 98);
	p = map(len, MAP_SHARED, memfd(len));
	printf("madvise read: %d\n",
	       !madvise(p, len, READ) && there(p, len, false) > 98);
	p = huge(len);
	printf("mlock: %d\n", !mlock(p, len) && resident(p, len) > 98);
}

/* Prints what has been locked and made before the kernel's call, which is barred. */
static void left_one(const char *what, char *p, size_t len)
{
	printf("%s: %d ", what, mlock(p, len));
	locked();
	munmap(p, len);
}

/* What the kernel locks as quickly alone, or quicker. */
static void left(const char *file)
{
	size_t len = 96 * MIB;
	char *p = huge(len);
	int fd = open(file, O_RDONLY);

	forbid(SYS_mlock, 1, 0, 0, 64 * MIB, 0);
	memset(p, 1, len);
	left_one("huge", p, len);
	p = anonymous(len);
	memset(p, 1, len);
	left_one("small", p, len);
	p = map(len, MAP_SHARED, memfd(len));
	memset(p, 1, len);
	left_one("memfd", p, len);
	p = try_map(len, PROT_READ, MAP_SHARED, fd);
	if (p != MAP_FAILED)
		left_one("file", p, len);
	p = anonymous(len);
	printf("fresh: %d ", mlock(p, len));
	printf("made: %d\n", there(p, len, true) > 10);
	munmap(p, len);
	fflush(stdout);
	if (!mlockall(MCL_FUTURE)) {
		forbid(SYS_madvise, 2, 16, 16, 2 * MIB, KILLS);
		p = try_map(len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
		printf("once: %zu %%\n", resident(p, len));
	}
}

static void *little_stack(void *arg)
{
	size_t len = 64 * MIB, i;
	char *p;

	(void)arg;
	pthread_cancel(pthread_self()); /* takes effect in none of these */
	p = try_anonymous(len, MAP_POPULATE);
	(void)mlock(p, len);
	munmap(p, len);
	p = try_map(len, PROT_READ | PROT_WRITE, MAP_SHARED, memfd(len));
	for (i = 0; i < len; i += 2 * PAGE)
		p[i] = 1;
	return (void *)(intptr_t)madvise(p, len, WRITE);
}

static void on_a_thread(void)
{
	pthread_attr_t least;
	pthread_t thread;
	void *result;

	pthread_attr_init(&least);
	pthread_attr_setstacksize(&least, (size_t)PTHREAD_STACK_MIN);
	if (pthread_create(&thread, &least, little_stack, NULL) ||
	    pthread_join(thread, &result))
		return;
	printf("thread: %d\n", result == PTHREAD_CANCELED ? 7 : !!result);
}

static volatile sig_atomic_t handled;

static void map_in_handler(int number)
{
	(void)number;
	munmap(try_anonymous(65 * MIB, MAP_POPULATE), 65 * MIB);
	handled++;
}

/* Far below the kernel's frame. */
static void map_deep_in_handler(int number)
{
	volatile char room[256 << 10];

	room[0] = room[sizeof(room) - 1] = 0;
	map_in_handler(number);
	room[1] = 0;
}

/* Interrupts malloc(), sooner or later, with its lock held. */
static void interrupted(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct itimerval once = { { 0, 0 }, { 0, 100000 } };
	int armed = -1;
	void *piece[64] = { NULL };
	unsigned int random = 1, i;

	while (handled < 12) {
		if (armed != handled) {
			armed = handled;
			sigaction(SIGALRM, &action, NULL);
			setitimer(ITIMER_REAL, &once, NULL);
		}
		random = random * 1103515245 + 12345;
		i = random >> 8 & 63;
		free(piece[i]);
		piece[i] = malloc((random >> 16) % 5000 + 1);
	}
	puts("done");
}

static void old(void)
{
	forbid(SYS_madvise, 2, 16, 16, 0, EINVAL);
	errno = 77;
	printf("%d ", try_anonymous(96 * MIB, MAP_POPULATE) != MAP_FAILED);
	printf("%d\n", errno);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t len;

	if (!strcmp(what, "old"))
		old();
	else if (!strcmp(what, "hot"))
		hot();
	else if (!strcmp(what, "served"))
		served();
	else if (!strcmp(what, "before-6.11")) {
		forbid_query();
		served();
	} else if (!strcmp(what, "left"))
		left(argv[2]);
	else if (!strcmp(what, "thread"))
		on_a_thread();
	else if (!strcmp(what, "interrupted"))
		interrupted(map_in_handler, 0);
	else if (!strcmp(what, "interrupted-once"))
		interrupted(map_in_handler, SA_RESETHAND);
	else if (!strcmp(what, "interrupted-deep"))
		interrupted(map_deep_in_handler, 0);
	else
		for (len = 8 * MIB; len <= 96 * MIB; len *= 12) {
			maps(len);
			advises(len);
			locks(len);
		}
	return 0;
}
