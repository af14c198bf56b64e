// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fill what a kernel will write next with a pattern, so that a byte it omits
 * shows: free memory, or a device without a driver.
 *	bmmpoison memory MIB PATTERN
 *	bmmpoison device START BYTES PATTERN	(physical, multiples of a page)
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE (2UL << 20)

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

static void fill(volatile uint64_t *to, uint64_t bytes, uint64_t pattern)
{
	for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = pattern;
}

static int memory(uint64_t bytes, uint64_t pattern)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "memory");
	fill((uint64_t *)at, bytes, pattern);
	printf("%lu\n", bytes);
	return 0;
}

static int device(uint64_t start, uint64_t bytes, uint64_t pattern)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);

	if (fd < 0)
		err(1, "/dev/mem");
	for (uint64_t done = 0; done < bytes; done += PIECE) {
		uint64_t some = bytes - done < PIECE ? bytes - done : PIECE;
		uint64_t *at = mmap(NULL, some, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, start + done);

		if (at == MAP_FAILED)
			err(1, "device");
		fill(at, some, pattern);
		if (at[some / sizeof(*at) - 1] != pattern)
			err(1, "device holds something else");
		munmap(at, some);
	}
	printf("%lu\n", bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "memory"))
		return memory(number(argv[2]) << 20, number(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "device"))
		return device(number(argv[2]), number(argv[3]), number(argv[4]));
	fprintf(stderr, "usage: bmmpoison memory MIB PATTERN\n"
			"       bmmpoison device START BYTES PATTERN\n");
	return 2;
}
