// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is mapped where. Linux 6.11 can look up one address (PROCMAP_QUERY, some
 * microseconds). Before, maps has to be read from its beginning: once for a
 * range, as lookups ascend. Not smaps, for which the kernel walks the page tables
 * of everything mapped below; how large the pages are, the file system tells.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

#ifndef SYS_faccessat2
#define SYS_faccessat2 439 /* on every architecture */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

bool lines_open(struct maps *lines, const char *path)
{
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	lines->at = lines->got = 0;
	lines->last.end = 0;
	return lines->fd >= 0;
}

/* Returns whether the system tells anything about mappings. */
bool maps_open(struct maps *maps)
{
	return lines_open(maps, "/proc/self/maps");
}

void maps_close(const struct maps *maps)
{
	if (maps->fd >= 0)
		close(maps->fd);
}

/*
 * The device of memory without a file (memfd, shared anonymous, System V): one
 * for base pages, @flags 0, and one for each size of huge pages. 0: none.
 */
static dev_t nameless(unsigned int flags)
{
	int fd = memfd_create("bulkmm", MFD_CLOEXEC | MFD_NOEXEC_SEAL | flags);
	struct stat st = { 0 };

	if (fd < 0) /* before Linux 6.3 */
		fd = memfd_create("bulkmm", MFD_CLOEXEC | flags);
	if (fd < 0)
		return 0;
	fstat(fd, &st);
	close(fd);
	return st.st_dev;
}

/* Remembered: never a file's device, and asked for at each shared mapping. */
static bool is_nameless(dev_t device)
{
	static dev_t known; /* 0: unknown */
	dev_t here = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!here) {
		here = nameless(0);
		__atomic_store_n(&known, here, __ATOMIC_RELAXED);
	}
	return device == here;
}

/* The file system of a regular file, even of a removed one; shortens @name. */
static bool file_system(char *name, dev_t device, struct statfs *fs)
{
	char *end = strrchr(name, '/');
	struct stat st;

	if (!end || (!stat(name, &st) && !S_ISREG(st.st_mode)))
		return false; /* a device: devtmpfs is tmpfs, too */
	end[end == name] = 0;
	return !stat(name, &st) && st.st_dev == device && !statfs(name, fs);
}

/* Bytes of the huge pages of memory without a file; 0: it has none. */
static size_t nameless_huge(dev_t device)
{
	unsigned int bits;

	for (bits = 14; bits <= 34; bits++) /* 16 KiB to 16 GiB */
		if (nameless(MFD_HUGETLB | bits << MAP_HUGE_SHIFT) == device)
			return (size_t)1 << bits;
	return 0;
}

/* As in <linux/stat.h>, which may be older than the kernel. */
struct status {
	uint32_t mask, block;
	uint64_t attributes;
	uint32_t links, uid, gid;
	uint16_t mode, spare;
	uint64_t more[27];
};

#define STATUS_NO_SYNC	0x4000 /* no question to a server */
#define STATUS_MODE_UID 0x0aU
#define STATUS_DAX	0x200000U

static bool is_in_memory(const char *name)
{
	struct statfs fs;

	return !statfs(name, &fs) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC ||
		fs.f_type == RAMFS_MAGIC);
}

/*
 * Whether a file is read into the page cache before it is mapped, and whether
 * mincore() then tells what has been read: of files that the caller may not
 * write, and does not own, it says that all has. One that is removed is taken
 * for such a file if it is of a disk.
 */
static unsigned int reads_of(const char *name, dev_t device)
{
	struct status status = { 0 };
	bool seen;

	if (syscall(SYS_statx, AT_FDCWD, name, STATUS_NO_SYNC, STATUS_MODE_UID,
		    &status))
		return major(device) ? READ_AHEAD : 0;
	if (!S_ISREG(status.mode) && !S_ISBLK(status.mode))
		return 0; /* a device's memory */
	if (status.attributes & STATUS_DAX || is_in_memory(name))
		return 0;
	seen = status.uid == geteuid() ||
	       !syscall(SYS_faccessat2, AT_FDCWD, name, W_OK, AT_EACCESS);
	return READ_AHEAD | (seen ? CACHE_SEEN : 0);
}

/*
 * Finds out the size of a file's pages, if that is unknown (0), and whether its
 * file system may have to be told of the first write to a resident page of a
 * shared mapping. One in memory need not; for all others, with a disk or
 * without (Btrfs, NFS, FUSE), the kernel decides.
 */
static void look_at_file(struct map *map, dev_t device, char *name)
{
	bool disk = major(device), memory = !disk && is_nameless(device);
	struct statfs fs = { 0 };

	if (!memory)
		map->flags |= reads_of(name, device);
	if (!disk && !memory)
		file_system(name, device, &fs);
	if (map->flags & SHARED && (memory || fs.f_type == TMPFS_MAGIC))
		map->flags |= UNWATCHED;
	if (map->page)
		return;
	if (fs.f_type == HUGETLBFS_MAGIC)
		map->page = (size_t)fs.f_bsize;
	else if (!disk && !memory && !fs.f_type)
		map->page = nameless_huge(device);
}

static bool refill(struct maps *maps)
{
	ssize_t got = read(maps->fd, maps->text, sizeof(maps->text));

	maps->at = 0;
	maps->got = got < 0 ? 0 : (size_t)got;
	return maps->got;
}

/* The next line, without its end; cut to @size - 1 bytes. */
bool lines_next(struct maps *maps, char *line, size_t size)
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

static bool read_maps(struct maps *maps, uintptr_t addr, struct map *map)
{
	unsigned int major, minor;
	char line[512], mode[5];
	uint64_t inode;
	int name;

	if (addr < maps->last.end) {
		*map = maps->last;
		return true;
	}
	do {
		if (!lines_next(maps, line, sizeof(line)) ||
		    sscanf(line,
			   "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64
			   " %n",
			   &map->start, &map->end, mode, &major, &minor, &inode,
			   &name) != 6)
			return false;
	} while (addr >= map->end);
	map->flags = (mode[0] == 'r' ? READABLE : 0) |
		     (mode[1] == 'w' ? WRITABLE : 0) |
		     (mode[3] == 's' ? SHARED : 0);
	map->page = 0;
	if (!inode && !major)
		map->flags |= ANONYMOUS;
	else
		look_at_file(map, makedev(major, minor), line + name);
	if (!map->page)
		map->page = (size_t)sysconf(_SC_PAGESIZE);
	maps->last = *map;
	return true;
}

/* Queries again, for the name of the file; no more than fits little stacks. */
static void query_file(const struct maps *maps, struct query *query,
		       struct map *map)
{
	dev_t device = makedev(query->major, query->minor);
	char name[1024] = "";

	query->name = (uintptr_t)name;
	query->name_len = sizeof(name);
	if (ioctl(maps->fd, QUERY, query))
		*name = 0;
	look_at_file(map, device, name);
}

/**
 * map_find() - the mapping at an address, or the next one
 * @maps:  from maps_open()
 * @addr:  the address, not below the one of the call before
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
		return !cheap && read_maps(maps, addr, map);
	map->start = query.start;
	map->end = query.end;
	map->page = query.page;
	map->flags = query.vma_flags & (READABLE | WRITABLE | SHARED);
	if (!query.inode && !query.major && !query.minor)
		map->flags |= ANONYMOUS;
	if (map->flags & SHARED || (!cheap && !(map->flags & ANONYMOUS)))
		query_file(maps, &query, map);
	return true;
}

/*
 * The mapping at one address, or the next one; false: there is none, or the
 * system does not tell. Not inline: the stack it takes must be free afterwards.
 */
__attribute__((noinline)) bool map_at(uintptr_t addr, struct map *map)
{
	struct maps maps;
	bool known = maps_open(&maps) && map_find(&maps, addr, false, map);

	maps_close(&maps);
	return known;
}
