// SPDX-License-Identifier: GPL-2.0-only
/* The ways to fault folios in. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bmmfault.h"
#include "measure.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_SHIFT 26 /* of the size in the flags of mmap and memfd_create */

uint64_t touched_word(const struct work *work, const struct way *way)
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

int look(const struct work *work, const struct way *way, char *at,
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
		err(1, "MADV_POPULATE_WRITE");
	return 0;
}

/* mmap() itself, or fallocate() before it, has allocated already. */
static int nothing(const struct work *work, const struct way *way, char *at,
		   uint64_t folios)
{
	(void)work, (void)way, (void)at, (void)folios;
	return 1;
}

const struct way ways[WAYS] = {
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

static int is_map_populate(const struct way *way)
{
	return !strcmp(way->name, "map-populate");
}

#define THP "/sys/kernel/mm/transparent_hugepage"

/*
 * MAP_POPULATE acts before any madvise() can: for that moment every process may
 * have folios of this size. The only other one that maps new memory meanwhile
 * dirties memory, and has opted out.
 */
static void policy(const struct work *work, const char *word)
{
	char file[96];
	int fd;

	snprintf(file, sizeof(file), THP "/hugepages-%lukB/enabled",
		 work->bytes / 1024);
	if (work->bytes == 2 << 20 && access(file, F_OK)) /* 6.1 */
		strcpy(file, THP "/enabled");
	fd = open(file, O_WRONLY);
	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		err(1, "%s", file);
	close(fd);
}

static int log2_of(uint64_t bytes)
{
	return 63 - __builtin_clzl(bytes);
}

/* A descriptor of hugetlb memory, -1 if the pool has too little. */
static int huge_file(const struct work *work, const struct way *way,
		     uint64_t bytes)
{
	unsigned int flags = MFD_HUGETLB | log2_of(work->bytes) << HUGE_SHIFT;
	int fd = memfd_create("bmmfault", flags);
	uint64_t start = now();

	if (fd < 0 || ftruncate(fd, bytes))
		err(1, "memfd_create");
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
	int prot = PROT_READ | PROT_WRITE | tags_prot(work);
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
	got = mmap(at, bytes, prot, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return got;
}

/* Map a batch at an aligned address; MAP_FAILED if there is no room for it. */
char *map(const struct work *work, const struct way *way, char *at,
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
		err(1, "MADV_HUGEPAGE");
	return got;
}

const struct way *way_named(const char *name, int hugetlb)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, name) && (hugetlb || !ways[i].fd))
			return &ways[i];
	errx(1, "no way %s", name);
	return NULL;
}
