// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The files that bmm_stage() reads: opened for the page cache and around it,
 * and compared before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "stage.h"

/* Waits until a lease is given back, but not for the writer of a FIFO. */
static int open_cached(const char *path, int flags)
{
	int fd = open(path, flags);
	struct stat status;

	if (fd < 0 && errno == EAGAIN && !stat(path, &status) &&
	    S_ISREG(status.st_mode))
		fd = open(path, flags & ~O_NONBLOCK);
	return fd;
}

/* Opens a file; @failed is its number until that has worked. */
static int open_source(struct staging *all, size_t number)
{
	const char *path = all->files[number].path;
	struct source *source = &all->sources[number];
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct map map = { 0 };
	size_t len;

	all->memory->failed = number;
	source->cached = open_cached(path, flags);
	if (source->cached < 0 || fstat(source->cached, &source->status))
		return stage_fail(all, errno, BMM_CAUSE_FILE);
	if (!S_ISREG(source->status.st_mode))
		return stage_fail(all,
				  S_ISDIR(source->status.st_mode) ? EISDIR :
								    ESPIPE,
				  BMM_CAUSE_FILE);
	len = (size_t)source->status.st_size;
	all->files[number].len = len;
	if (!len)
		return 0;
	source->map = mmap(NULL, len, PROT_READ, MAP_SHARED, source->cached, 0);
	if (source->map == MAP_FAILED || !map_at((uintptr_t)source->map, &map))
		map.flags = READ_AHEAD;
	source->seen = map.flags & CACHE_SEEN;
	if (map.flags & READ_AHEAD) /* else it is in memory */
		source->direct = open(path, flags | O_DIRECT);
	return 0;
}

/* Whether the name still led to the same file when it was opened once more. */
static bool is_same(const struct source *source)
{
	struct stat status;

	return source->direct < 0 || (!fstat(source->direct, &status) &&
				      status.st_ino == source->status.st_ino &&
				      status.st_dev == source->status.st_dev);
}

int stage_open(struct staging *all)
{
	size_t bytes = all->count * sizeof(*all->sources), i;
	struct source *sources;
	int error;

	sources = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sources == MAP_FAILED)
		return stage_fail(all, ENOMEM, BMM_CAUSE_MEMORY);
	all->sources = sources;
	for (i = 0; i < all->count; i++)
		sources[i] = (struct source){ -1, -1, MAP_FAILED, false, { 0 } };
	for (i = 0; i < all->count; i++) {
		error = open_source(all, i);
		if (error)
			return error;
		if (!is_same(&sources[i]))
			return stage_fail(all, ESTALE, BMM_CAUSE_CHANGED);
	}
	all->memory->failed = all->count;
	return 0;
}

void stage_close(struct staging *all)
{
	struct source *source = all->sources;
	size_t i;

	if (!source)
		return;
	for (i = 0; i < all->count; i++, source++) {
		if (source->map != MAP_FAILED)
			munmap(source->map, all->files[i].len);
		if (source->direct >= 0)
			close(source->direct);
		if (source->cached >= 0)
			close(source->cached);
	}
	munmap(all->sources, all->count * sizeof(*all->sources));
}

/* What has been read is what was there before, and all of it. */
int stage_compare(struct staging *all)
{
	const struct stat *before;
	struct stat now;
	size_t i;

	for (i = 0; i < all->count; i++) {
		before = &all->sources[i].status;
		if (fstat(all->sources[i].cached, &now)) {
			all->memory->failed = i;
			return stage_fail(all, errno, BMM_CAUSE_FILE);
		}
		if (now.st_size == before->st_size &&
		    now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
		    now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
		    now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
		    now.st_ctim.tv_nsec == before->st_ctim.tv_nsec)
			continue;
		all->memory->failed = i;
		return stage_fail(all, ESTALE, BMM_CAUSE_CHANGED);
	}
	return 0;
}
