// SPDX-License-Identifier: GPL-2.0-only
/* Uses a node's memory while it may move elsewhere, and checks every word. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bmmplug.h"
#include "measure.h"
#include "words.h"

#define MPOL_BIND   2
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2
#define PAGE	    4096UL
#define PAGEMAP_PFN ((1UL << 55) - 1)

static int wait_for(const char *file)
{
	uint64_t start = now();
	struct stat st;

	while (stat(file, &st)) {
		if (now() - start > PATIENCE)
			err(1, "%s", file);
		usleep(10000);
	}
	return 0;
}

/*
 * Counts the mapping's pages on the node. With get_mempolicy(): move_pages()
 * exists only with CONFIG_NUMA_MIGRATION.
 */
static int pages_on(char *base, uint64_t bytes, int node, uint64_t *on)
{
	*on = 0;
	for (uint64_t at = 0; at < bytes; at += PAGE) {
		int where = -1;

		if (syscall(SYS_get_mempolicy, &where, NULL, 0UL, base + at,
			    MPOL_F_NODE | MPOL_F_ADDR))
			err(1, "get_mempolicy");
		*on += where == node;
	}
	return 0;
}

/* Bytes of a memory block. */
static uint64_t block_size(void)
{
	FILE *file = fopen("/sys/devices/system/memory/block_size_bytes", "r");
	uint64_t bytes = 0;

	if (file && fscanf(file, "%lx", &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes;
}

/* Lists the blocks that hold a mapping, in a file that appears as a whole. */
static int list_blocks(const char *base, uint64_t bytes, const char *name)
{
	uint64_t size = block_size(), last = 0;
	int map = open("/proc/self/pagemap", O_RDONLY);
	char part[256];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", name);
	file = fopen(part, "w");
	if (!size || map < 0 || !file)
		err(1, "%s", part);
	for (uint64_t at = 0; at < bytes; at += PAGE) {
		uint64_t page, block;

		if (pread(map, &page, 8, ((uintptr_t)base + at) / PAGE * 8) != 8)
			err(1, "pagemap");
		block = (page & PAGEMAP_PFN) * PAGE / size;
		if (!at || block != last)
			fprintf(file, "%lu\n", block);
		last = block;
	}
	close(map);
	if (fclose(file) || rename(part, name))
		err(1, "%s", name);
	return 0;
}

int use(int node, uint64_t bytes, uint64_t seed, const char *filled,
	const char *go)
{
	unsigned long nodes = 1UL << node;
	uint64_t on, left, bad;
	char *base;

	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		err(1, "mmap");
	if (syscall(SYS_mbind, base, bytes, MPOL_BIND, &nodes, 64UL, 0UL))
		err(1, "mbind");
	store((uint64_t *)base, bytes / 8, seed, 0);
	if (pages_on(base, bytes, node, &on))
		return 1;
	/* from here on it may migrate anywhere */
	if (syscall(SYS_mbind, base, bytes, 0, NULL, 0UL, 0UL))
		err(1, "mbind");
	if (list_blocks(base, bytes, filled) || wait_for(go) ||
	    pages_on(base, bytes, node, &left))
		return 1;
	bad = differing((uint64_t *)base, bytes / 8, seed, 0);
	if (bad || on != bytes / PAGE) {
		fprintf(stderr, "bmmplug: %lu words differ, %lu of %lu pages\n",
			bad, on, bytes / PAGE);
		return 1;
	}
	printf("%lu %lu\n", bytes, on - left);
	return 0;
}
