// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Files of a disk that are not in memory yet: readahead follows one reader, so
 * several must not read them at once.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"

static char name[] = "bulkmm-cold-XXXXXX";

static void remove_file(void)
{
	unlink(name);
}

static bool is_cached(int fd, size_t at)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)at);
	unsigned char there = 0;

	check(!mincore(p, PAGE, &there));
	munmap(p, PAGE);
	return there & 1;
}

/* Takes what is behind @at out of the page cache, and reads the rest. */
static void keep(int fd, size_t at)
{
	static char text[MIB];
	size_t i;

	for (i = 0; i < at; i += MIB)
		check(pread(fd, text, MIB, (off_t)i) == (ssize_t)MIB);
	posix_fadvise(fd, (off_t)at, 0, POSIX_FADV_DONTNEED);
	if (at < LEN && is_cached(fd, at)) {
		puts("no disk");
		exit(SKIPPED);
	}
	check(!at || is_cached(fd, 0));
}

static int file_of_a_disk(void)
{
	static char text[MIB];
	int fd = mkstemp(name);
	size_t i;

	check(fd >= 0);
	atexit(remove_file);
	memset(text, 7, sizeof(text));
	for (i = 0; i < LEN; i += MIB)
		check(write(fd, text, MIB) == (ssize_t)MIB);
	check(!fsync(fd));
	cpus_made = 4;
	return fd;
}

/* How many threads were started for it. */
static unsigned int threads_for(int fd, int flags, bool read)
{
	struct bmm_options options = OPTIONS(.flags = read ? BMM_READ : 0);
	char *p = try_map(LEN, PROT_READ | PROT_WRITE, flags, fd);

	created = 0;
	all_of(p, LEN, &options);
	check(faults_of(p, LEN, !read) <= 2);
	munmap(p, LEN);
	return created;
}

/* One reader, whatever the mapping; and several where nothing is to be read. */
CASE(cold_files, HERE | MAPS)
{
	int fd = file_of_a_disk();

	keep(fd, 0);
	check(!threads_for(fd, MAP_SHARED, true));
	check(threads_for(fd, MAP_PRIVATE, false));
	keep(fd, 0);
	check(!threads_for(fd, MAP_PRIVATE, true));
	keep(fd, 0);
	check(!threads_for(fd, MAP_PRIVATE, false));
	keep(fd, 0);
	check(!threads_for(fd, MAP_SHARED, false));
	remove_file(); /* then nothing tells */
	check(!threads_for(fd, MAP_SHARED, true));
}

/* Of a file of others the system does not tell what is in the cache. */
CASE(a_file_of_others, HERE)
{
	int fd = file_of_a_disk();

	if (getuid() || fchmod(fd, 0444) || seteuid(65534)) {
		puts("needs root");
		exit(SKIPPED);
	}
	check(!threads_for(fd, MAP_SHARED, true));
	check(!seteuid(0));
}

/* Half of it is in memory: several copy that, and one reads the rest in order. */
CASE(half_a_cold_file, HERE)
{
	int fd = file_of_a_disk();
	char *p;

	keep(fd, LEN / 2);
	p = try_map(LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	cold_from = (uintptr_t)p + LEN / 2;
	check(all_of(p, LEN, NULL).threads > 1);
	check(cold_reads && !cold_strays);
}

/* Beside it is memory, which others do meanwhile. */
CASE(a_cold_file_beside, HERE)
{
	char *p = anonymous(2 * LEN);
	int fd = file_of_a_disk();

	keep(fd, 0);
	check(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
		   0) == p);
	check(all_of(p, 2 * LEN, NULL).threads > 1);
	check(is_there(p, 2 * LEN) && p[LEN - 1] == 7);
}
