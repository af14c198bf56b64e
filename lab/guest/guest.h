/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the guest's programs share: their commands; files and memory, without which
 * a program ends; words to write to memory and to check when it is read again.
 */
#ifndef GUEST_H
#define GUEST_H

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL 4096UL

/*
 * struct command - what a program does
 * @usage: its name, and after a blank what follows it on the command line
 * @few:   how many words follow, at least
 * @many:  likewise, at most
 * @run:   is given these words, and NULL for each that is not there
 */
struct command {
	const char *usage;
	int few, many;
	void (*run)(char **word);
};

/* Run the command that a program was called with; @end: of the list. */
static inline int run_one(const struct command *all, const struct command *end,
			  int argc, char **argv)
{
	char *words[8] = { NULL };

	for (const struct command *one = all; one < end && argc > 1; one++) {
		size_t len = strcspn(one->usage, " ");

		if (strlen(argv[1]) != len ||
		    strncmp(argv[1], one->usage, len) || argc - 2 < one->few ||
		    argc - 2 > one->many)
			continue;
		memcpy(words, argv + 2, (size_t)(argc - 2) * sizeof(*words));
		one->run(words);
		return 0;
	}
	for (const struct command *one = all; one < end; one++)
		fprintf(stderr, "usage: %s %s\n", argv[0], one->usage);
	return 2;
}

#define RUN_ONE(all, argc, argv) \
	run_one(all, all + sizeof(all) / sizeof(*(all)), argc, argv)

static inline uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

static inline int opened(const char *file, int flags)
{
	int fd = open(file, flags, 0600);

	if (fd < 0)
		err(1, "%s", file);
	return fd;
}

/* @fd: -1 for memory of no file */
static inline void *mapped(uint64_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (at == MAP_FAILED)
		err(1, "mmap of %lu bytes", bytes);
	return at;
}

/* A file of memory; @flags: of memfd_create() */
static inline int memfd_of(uint64_t bytes, unsigned int flags)
{
	int fd = (int)syscall(SYS_memfd_create, "guest", flags);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		err(1, "memfd_create");
	return fd;
}

/* Aligned to a multiple of @align, untouched, with an advice, never unmapped. */
static inline void *advised(uint64_t bytes, uint64_t align, int advice)
{
	char *at = mapped(bytes + align, MAP_PRIVATE, -1);

	at += -(uintptr_t)at % align;
	if (madvise(at, bytes, advice))
		err(1, "madvise %d", advice);
	return at;
}

/* The number of a line of a file, such as "MemFree: %lu"; 0: there is none. */
static inline uint64_t number_in(const char *path, const char *format)
{
	char line[128];
	uint64_t count = 0;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

/* An ioctl() that must succeed, and what it returns. */
#define IOCTL(fd, request, argument)                     \
	({                                               \
		int said = ioctl(fd, request, argument); \
                                                         \
		if (said < 0)                            \
			err(1, #request);                \
		said;                                    \
	})

/* A userfaultfd for the faults of a @mode in memory. */
static inline int userfaults(void *at, uint64_t bytes, uint64_t mode,
			     uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register range = { .range = { (uintptr_t)at, bytes },
					 .mode = mode };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	IOCTL(fd, UFFDIO_API, &api);
	IOCTL(fd, UFFDIO_REGISTER, &range);
	return fd;
}

/* A handler of what was caused on purpose. */
static inline void ignored(int number)
{
}

/* Wait for a child, which must succeed. */
static inline void wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the child did not end as it should: status %d", status);
}

/* The page frame that is mapped here; 0: none is. */
static inline uint64_t pfn_of(const void *at)
{
	static int map = -1;
	uint64_t entry;

	if (map < 0)
		map = opened("/proc/self/pagemap", O_RDONLY);
	if (pread(map, &entry, 8, (off_t)((uintptr_t)at / SMALL * 8)) != 8)
		err(1, "pagemap");
	return entry & ((1UL << 55) - 1);
}

/* Where pages of memory are to come from: an MPOL_ mode, and a mask of nodes. */
static inline void bound(void *at, uint64_t bytes, int mode, unsigned long nodes)
{
	if (syscall(SYS_mbind, at, bytes, mode, &nodes, 64UL, 0UL))
		err(1, "mbind");
}

static inline uint64_t faults_so_far(void)
{
	struct rusage usage = {};

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
}

/* Counts the page faults of a write to each page of memory. */
static inline uint64_t faults_of_writes(volatile char *at, uint64_t bytes)
{
	uint64_t before = faults_so_far();

	for (uint64_t i = 0; i < bytes; i += SMALL)
		at[i] = at[i];
	return faults_so_far() - before;
}

/* Pin memory for as long as this process lives. */
static inline void pinned_by_io_uring(void *at, size_t bytes)
{
	struct iovec memory = { .iov_base = at, .iov_len = bytes };
	struct io_uring_params params = {};
	long ring = syscall(SYS_io_uring_setup, 1, &params);

	if (ring < 0 || syscall(SYS_io_uring_register, ring,
				IORING_REGISTER_BUFFERS, &memory, 1))
		err(1, "io_uring");
}

/* A word that differs for every index and every seed. */
static inline uint64_t word_at(uint64_t seed, uint64_t index)
{
	return (index + 1) * 0x9e3779b97f4a7c15UL ^ seed << 56;
}

static inline void store(uint64_t *to, uint64_t words, uint64_t seed,
			 uint64_t first)
{
	for (uint64_t i = 0; i < words; i++)
		to[i] = word_at(seed, first + i);
}

static inline uint64_t differing(const uint64_t *in, uint64_t words,
				 uint64_t seed, uint64_t first)
{
	uint64_t bad = 0;

	for (uint64_t i = 0; i < words; i++)
		bad += in[i] != word_at(seed, first + i);
	return bad;
}

#endif
