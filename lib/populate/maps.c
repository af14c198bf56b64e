// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is mapped where. Linux 6.11 can look up one address (PROCMAP_QUERY, some
 * microseconds). Before, smaps has to be read from its beginning, for which the
 * kernel walks the page tables of everything mapped below: once for a range, as
 * lookups ascend.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "populate.h"

/* As in <linux/fs.h>, which may be older than the kernel. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page, offset, inode;
	uint32_t major, minor, name_len, build_len;
	uint64_t name, build;
};

#define QUERY	      _IOWR('f', 17, struct query)
#define QUERY_OR_NEXT 0x10U
#define VMA_READABLE  1U
#define VMA_WRITABLE  2U
#define VMA_SHARED    8U

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

/* Returns whether the system tells anything about mappings. */
bool maps_open(struct maps *maps)
{
	maps->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	maps->smaps = -1;
	maps->at = maps->got = 0;
	return maps->fd >= 0;
}

void maps_close(const struct maps *maps)
{
	if (maps->fd >= 0)
		close(maps->fd);
	if (maps->smaps >= 0)
		close(maps->smaps);
}

/* The device of memory without a file: memfd, shared anonymous, System V. */
static dev_t nameless(void)
{
	static dev_t known; /* 0: unknown; never a file's device */
	dev_t device = __atomic_load_n(&known, __ATOMIC_RELAXED);
	struct stat st;
	int fd;

	if (device)
		return device;
	fd = memfd_create("bulkmm", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0) /* before Linux 6.3 */
		fd = memfd_create("bulkmm", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st))
		__atomic_store_n(&known, st.st_dev, __ATOMIC_RELAXED);
	close(fd);
	return __atomic_load_n(&known, __ATOMIC_RELAXED);
}

/* Whether a file, even a removed one, is on tmpfs; shortens @name. */
static bool on_tmpfs(char *name, dev_t device)
{
	char *end = strrchr(name, '/');
	struct statfs fs;
	struct stat st;

	if (!end || (!stat(name, &st) && !S_ISREG(st.st_mode)))
		return false; /* a device: devtmpfs is tmpfs, too */
	end[end == name] = 0;
	return !stat(name, &st) && st.st_dev == device && !statfs(name, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

/*
 * Whether the file system of a shared mapping may have to be told of the first
 * write to a resident page. One in memory need not; for all others, with a
 * disk or without (Btrfs, NFS, FUSE), the kernel decides.
 */
static bool is_watched(dev_t device, char *name)
{
	if (major(device))
		return true;
	return device != nameless() && !on_tmpfs(name, device);
}

static bool refill(struct maps *maps)
{
	ssize_t got = read(maps->smaps, maps->text, sizeof(maps->text));

	maps->at = 0;
	maps->got = got < 0 ? 0 : (size_t)got;
	return maps->got;
}

/* Not stdio, which allocates: the caller may be an allocator. May truncate. */
static bool next_line(struct maps *maps, char *line, size_t size)
{
	size_t len = 0;
	char c = 0;

	while (c != '\n') {
		if (maps->at == maps->got && !refill(maps))
			return false;
		c = maps->text[maps->at++];
		if (len + 1 < size)
			line[len++] = c;
	}
	line[len - (line[len - 1] == '\n')] = 0;
	return true;
}

/* smaps has a line for each mapping, then its "Name: value" lines. */
static bool read_smaps(struct maps *maps, uintptr_t addr, struct map *map)
{
	unsigned int major, minor;
	char line[512], mode[5];
	bool found = false;
	uint64_t inode;
	size_t kib;
	int name;

	if (maps->smaps < 0)
		maps->smaps = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	while (next_line(maps, line, sizeof(line))) {
		if (sscanf(line,
			   "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64
			   " %n",
			   &map->start, &map->end, mode, &major, &minor, &inode,
			   &name) == 6) {
			found = addr < map->end;
			map->readable = mode[0] == 'r';
			map->writable = mode[1] == 'w';
			map->shared = mode[3] == 's';
			map->anonymous = !inode && !major;
			map->watched = found && map->shared &&
				       is_watched(makedev(major, minor),
						  line + name);
		} else if (found &&
			   sscanf(line, "KernelPageSize: %zu", &kib) == 1) {
			map->page = kib * KIB;
			return true;
		}
	}
	return false;
}

/* Queries again, for the name of the file; no more than fits little stacks. */
static bool query_is_watched(const struct maps *maps, struct query *query)
{
	char name[1024] = "";

	if (!query->major) {
		query->name = (uintptr_t)name;
		query->name_len = sizeof(name);
		if (ioctl(maps->fd, QUERY, query))
			return true;
	}
	return is_watched(makedev(query->major, query->minor), name);
}

/**
 * map_find() - the mapping at an address, or the next one
 * @maps:  from maps_open()
 * @addr:  the address, not below the end of the mapping found before
 * @cheap: give up if it takes more than microseconds
 *
 * Return: true if there is one and the system can tell.
 */
bool map_find(struct maps *maps, uintptr_t addr, bool cheap, struct map *map)
{
	struct query query = { .size = sizeof(query),
			       .flags = QUERY_OR_NEXT,
			       .addr = addr };

	if (ioctl(maps->fd, QUERY, &query))
		return !cheap && read_smaps(maps, addr, map);
	map->start = query.start;
	map->end = query.end;
	map->page = query.page;
	map->readable = query.vma_flags & VMA_READABLE;
	map->writable = query.vma_flags & VMA_WRITABLE;
	map->shared = query.vma_flags & VMA_SHARED;
	map->anonymous = !query.inode && !query.major && !query.minor;
	map->watched = map->shared && query_is_watched(maps, &query);
	return true;
}
