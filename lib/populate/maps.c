// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is mapped where. Linux 6.11 answers for one address (PROCMAP_QUERY, some
 * microseconds); before, smaps has to be read from its beginning, for which the
 * kernel walks the page tables of all that is mapped below.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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

int maps_open(void)
{
	return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

/* Lines of smaps: a mapping's own, then "Name: value" of it. */
static bool search(FILE *smaps, uintptr_t addr, struct map *map)
{
	char line[512], mode[5];
	bool found = false;
	unsigned int major;
	uint64_t inode;
	size_t kib;

	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line,
			   "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%*s %" SCNu64,
			   &map->start, &map->end, mode, &major, &inode) == 5) {
			found = addr < map->end;
			map->readable = mode[0] == 'r';
			map->writable = mode[1] == 'w';
			map->shared = mode[3] == 's';
			map->anonymous = !inode && !major;
			map->on_disk = major;
		} else if (found &&
			   sscanf(line, "KernelPageSize: %zu", &kib) == 1) {
			map->page = kib * KIB;
			return true;
		}
	}
	return false;
}

static bool read_smaps(uintptr_t addr, struct map *map)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool found;

	if (!smaps)
		return false;
	found = search(smaps, addr, map);
	fclose(smaps);
	return found;
}

/**
 * map_find() - the mapping at an address, or the next one
 * @maps:  of maps_open()
 * @addr:  the address
 * @cheap: give up where it takes more than microseconds
 * @map:   result
 *
 * Return: whether there is one, and the system tells.
 */
bool map_find(int maps, uintptr_t addr, bool cheap, struct map *map)
{
	struct query query = { .size = sizeof(query),
			       .flags = QUERY_OR_NEXT,
			       .addr = addr };

	if (ioctl(maps, QUERY, &query))
		return !cheap && read_smaps(addr, map);
	map->start = query.start;
	map->end = query.end;
	map->page = query.page;
	map->readable = query.vma_flags & VMA_READABLE;
	map->writable = query.vma_flags & VMA_WRITABLE;
	map->shared = query.vma_flags & VMA_SHARED;
	map->anonymous = !query.inode && !query.major && !query.minor;
	map->on_disk = query.major;
	return true;
}
