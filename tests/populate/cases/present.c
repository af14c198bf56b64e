// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pages that are there already, all of them or some, and whose they are. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define PAGES (LEN / PAGE)

static pid_t child_that_waits(void)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	check(child > 0);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A fork's pages and the page of zeroes are present, and yet not there. */
static void present_pages(bool huge)
{
	char *p = anonymous(LEN + 2 * MIB);
	pid_t child;

	p += -(uintptr_t)p & (2 * MIB - 1);
	if (huge)
		madvise(p, LEN, MADV_HUGEPAGE);
	faults_of(p, LEN, false);
	check_populated(p, LEN);
	child = child_that_waits();
	check_populated(p, LEN);
	end(child);
	munmap(p, LEN);
}

CASE(present, HERE | TOUCHED | ENTRIES)
{
	present_pages(false);
	present_pages(true);
}

/* Of a kernel that has none there is nothing to be tested. */
static void needs_scan(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (ioctl(fd, SCAN, NULL) && errno == ENOTTY)
		exit(SKIPPED);
	close(fd);
}

/* Pieces that begin with a page that is there, and go on with one of zeroes. */
CASE(zeroes_huge, HERE)
{
	char *p = map(LEN + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t i;

	cpus_made = 1;
	p += -(uintptr_t)p & (2 * MIB - 1);
	madvise(p, LEN, MADV_HUGEPAGE);
	for (i = 0; i < LEN; i += 4 * MIB) {
		p[i] = 1;
		(void)((volatile char *)p)[i + 2 * MIB];
	}
	check_populated(p, LEN);
	advised = 0;
	check(!bmm_populate(p, LEN, NULL, NULL));
	check(advised <= LEN / MIB);
}

/*
 * Single pages and runs of them, between holes of every length, across the ends
 * of the reads of pagemap. A page that is missed takes a fault.
 */
static bool was_there(size_t i)
{
	return i % 61 == 0 || i % 8 < 3 || (i > 2000 && i < 2100);
}

static void holes_of(char *p)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		if (was_there(i))
			p[i * PAGE] = 1;
	check(!bmm_populate(p, LEN, NULL, NULL));
	check(!faults_of(p, LEN, true));
	for (i = 0; i < PAGES; i++)
		check(p[i * PAGE] == was_there(i));
}

CASE(holes, HERE | TOUCHED | ENTRIES)
{
	holes_of(anonymous(LEN));
	holes_of(map(LEN, MAP_SHARED | MAP_ANONYMOUS, -1));
}

/* Some pages are as all should be: among them the first of each slice. */
static void write_some(char *p)
{
	size_t i;

	for (i = 0; i < LEN; i += 64 * PAGE)
		p[i] = 1;
}

/* Shared memory that is all there: few entries are read to know it. */
CASE(shared, HERE)
{
	char *p = map(LEN, MAP_SHARED | MAP_ANONYMOUS, -1);

	needs_scan();
	memset(p, 1, LEN);
	looked = 0;
	check(!bmm_populate(p, LEN, NULL, NULL));
	check(looked > 0 && looked < PAGES / 100);
	check(is_there(p, LEN) && p[0] == 1 && p[LEN - 1] == 1);
}

/* A small range: the kernel alone, unless what is there can be passed over. */
CASE(small_and_there, HERE)
{
	size_t len = 32 * MIB;
	char *own = anonymous(len);
	char *all = map(len, MAP_SHARED | MAP_ANONYMOUS, -1);

	needs_scan();
	memset(own, 1, len);
	memset(all, 1, len);
	check_populated(own, PAGE); /* the first call asks one thing more */
	advised = 0;
	check_populated(own, len);
	check(advised == 1);
	asked = 0;
	check_populated(all, len);
	check(asked < len / 4);
}

/* A child and then its parent, each of its own copy. */
static void populates_after_fork(char *p)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(bmm_populate(p, LEN, NULL, NULL) || !is_there(p, LEN));
	check(waitpid(child, &status, 0) == child && !status);
	check_populated(p, LEN);
}

/* Whether the child is still there, was there before, or is the caller. */
CASE(forked, HERE)
{
	char *p = anonymous(LEN);
	pid_t child;

	memset(p, 1, LEN);
	child = child_that_waits();
	write_some(p);
	check_populated(p, LEN);
	end(child);
	populates_after_fork(p);
}

/* What was given back, but has not been taken yet, is kept after all. */
CASE(lazily_free, HERE)
{
	char *p = anonymous(LEN);
	size_t i, kept = 0;

	memset(p, 1, LEN);
	check(!madvise(p, LEN, MADV_FREE));
	check(!bmm_populate(p, LEN, NULL, NULL));
	madvise(p, LEN, MADV_PAGEOUT);
	for (i = 0; i < LEN; i += PAGE)
		kept += (size_t)p[i];
	check(kept == PAGES);
}

/* A file's pages that were read are there, and a write would copy them. */
CASE(read_of_a_file, HERE)
{
	char *p = map(LEN, MAP_PRIVATE, memfd(LEN));

	faults_of(p, LEN, false);
	write_some(p);
	check_populated(p, LEN);
}
