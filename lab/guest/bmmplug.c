// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses memory of a node while it may be unplugged:
 *
 *	bmmplug use NODE MIB SEED FILLED GO
 *
 * allocates MIB of the node's memory, fills it with distinct words, lists the
 * memory blocks that hold them in the file FILLED (some more than once), waits
 * for the file GO and checks each word. Prints the number of bytes, and how
 * many pages have left the node; exits 1 if one was not on it at first, or a
 * word has changed.
 *
 *	bmmplug offline NODE
 *
 * takes every block of the node offline, in the order of the directory, as
 * daxctl does; prints how many nanoseconds that took.
 *
 *	bmmplug plug|unplug FILE DEVICE
 *
 * writes a device to a file of its driver, and prints how long that took.
 *
 *	bmmplug record
 *
 * begins a record of work; "plug" is counted in its first slot, "offline" and
 * "unplug" in its second.
 *
 *	bmmplug wait FILE TEXT KIB NODE BLOCKS
 *
 * writes a text to a file and waits until there are KIB of memory in all (0: do
 * not check) and BLOCKS blocks on the node; prints the nanoseconds it took.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"
#include "words.h"

#define MPOL_BIND   2
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2
#define PAGE	    4096UL
#define PAGEMAP_PFN ((1UL << 55) - 1)
#define PATIENCE    120000000000UL /* two minutes */

static int fail(const char *what)
{
	fprintf(stderr, "bmmplug: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

static int wait_for(const char *file)
{
	uint64_t start = now();
	struct stat st;

	while (stat(file, &st)) {
		if (now() - start > PATIENCE)
			return fail(file);
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
			return fail("get_mempolicy");
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
		return fail(part);
	for (uint64_t at = 0; at < bytes; at += PAGE) {
		uint64_t page, block;

		if (pread(map, &page, 8, ((uintptr_t)base + at) / PAGE * 8) != 8)
			return fail("pagemap");
		block = (page & PAGEMAP_PFN) * PAGE / size;
		if (!at || block != last)
			fprintf(file, "%lu\n", block);
		last = block;
	}
	close(map);
	return fclose(file) || rename(part, name) ? fail(name) : 0;
}

static int use(int node, uint64_t bytes, uint64_t seed, const char *filled,
	       const char *go)
{
	unsigned long nodes = 1UL << node;
	uint64_t on, left, bad;
	char *base;

	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return fail("mmap");
	if (syscall(SYS_mbind, base, bytes, MPOL_BIND, &nodes, 64UL, 0UL))
		return fail("mbind");
	store((uint64_t *)base, bytes / 8, seed, 0);
	if (pages_on(base, bytes, node, &on))
		return 1;
	/* from here on it may migrate anywhere */
	if (syscall(SYS_mbind, base, bytes, 0, NULL, 0UL, 0UL))
		return fail("mbind");
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

static int is_block(const char *name)
{
	return !strncmp(name, "memory", 6) && name[6] &&
	       !name[6 + strspn(name + 6, "0123456789")];
}

/* Opens a node's directory and enters it; without memory a node has none. */
static DIR *node_blocks(const char *node)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%s", node);
	return chdir(path) ? NULL : opendir(".");
}

static int write_offline(const char *block)
{
	char path[272];
	int fd, tries = 500;

	snprintf(path, sizeof(path), "%s/state", block);
	errno = 0;
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return fail(path);
	/* a page may be in use for the moment */
	while (write(fd, "offline", 7) < 0 && errno == EBUSY && tries--)
		usleep(10000);
	/* EINVAL: it is offline already */
	if (tries < 0 || (errno && errno != EINVAL && errno != EBUSY))
		return fail(path);
	close(fd);
	return 0;
}

/* The work of an operation is counted on one CPU. */
static void stay(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

/* Write to a driver's file, and count the work in one slot of a record. */
static int driver(const char *file, const char *device, int taken)
{
	uint64_t start = now();
	int fd = open(file, O_WRONLY);
	ssize_t done;

	if (fd < 0)
		return fail(file);
	stay();
	if (taken)
		bmm_mark(BMM_MARK_BEGIN(1));
	else
		bmm_mark(BMM_MARK_BEGIN(0));
	done = write(fd, device, strlen(device));
	if (taken)
		bmm_mark(BMM_MARK_END(1));
	else
		bmm_mark(BMM_MARK_END(0));
	if (done < 0)
		return fail(file);
	printf("%lu\n", now() - start);
	return 0;
}

static int offline(const char *node)
{
	uint64_t start = now();
	DIR *all = node_blocks(node);
	struct dirent *entry;

	if (!all)
		return fail(node);
	stay();
	bmm_mark(BMM_MARK_BEGIN(1));
	while ((entry = readdir(all)))
		if (is_block(entry->d_name) && write_offline(entry->d_name))
			return 1;
	bmm_mark(BMM_MARK_END(1));
	closedir(all);
	printf("%lu\n", now() - start);
	return 0;
}

static int count_blocks(const char *node)
{
	DIR *all = node_blocks(node);
	struct dirent *entry;
	int n = 0;

	while (all && (entry = readdir(all)))
		n += is_block(entry->d_name);
	if (all)
		closedir(all);
	return n;
}

/* KiB of memory */
static uint64_t memory_total(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	uint64_t kib = 0;

	if (file && fscanf(file, "MemTotal: %lu", &kib) != 1)
		kib = 0;
	if (file)
		fclose(file);
	return kib;
}

static int timed_wait(const char *file, const char *text, uint64_t kib,
		      const char *node, int blocks)
{
	int fd = open(file, O_WRONLY);
	uint64_t start = now();

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		return fail(file);
	while ((kib && memory_total() != kib) || count_blocks(node) != blocks) {
		if (now() - start > PATIENCE) {
			fprintf(stderr,
				"bmmplug: %lu kB in all and %d blocks, not %lu and %d\n",
				memory_total(), count_blocks(node), kib, blocks);
			return 1;
		}
		usleep(1000);
	}
	printf("%lu\n", now() - start);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "use"))
		return use(atoi(argv[2]), strtoull(argv[3], NULL, 0) << 20,
			   strtoull(argv[4], NULL, 0), argv[5], argv[6]);
	if (argc == 2 && !strcmp(argv[1], "record")) {
		bmm_mark(BMM_MARK_RECORD);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "plug"))
		return driver(argv[2], argv[3], 0);
	if (argc == 4 && !strcmp(argv[1], "unplug"))
		return driver(argv[2], argv[3], 1);
	if (argc == 3 && !strcmp(argv[1], "offline"))
		return offline(argv[2]);
	if (argc == 7 && !strcmp(argv[1], "wait"))
		return timed_wait(argv[2], argv[3], strtoull(argv[4], NULL, 0),
				  argv[5], atoi(argv[6]));
	fprintf(stderr, "usage: bmmplug use NODE MIB SEED FILLED GO\n"
			"       bmmplug plug|unplug FILE DEVICE\n"
			"       bmmplug record\n"
			"       bmmplug offline NODE\n"
			"       bmmplug wait FILE TEXT KIB NODE BLOCKS\n");
	return 2;
}
