// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm-mallocs: allocates, and makes the allocator, whichever it is, populate
 * what it maps, by MAP_POPULATE for a preload to see.
 */
#undef _FILE_OFFSET_BITS /* mmap() and mmap64() are two names here */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE ((size_t)64 << 20)
#define TIMES 4

static void *(*next)(void *, size_t, int, int, int, off_t);

/* Before main() this is the kernel's, later what follows: a preload, or libc */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	if (next && len >= LARGE && flags & MAP_ANONYMOUS && prot & PROT_WRITE)
		return next(addr, len, prot, flags | MAP_POPULATE, fd, at);
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, at);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t at)
	__attribute__((__alias__("mmap")));

int main(void)
{
	char *piece[TIMES];
	size_t i;

	*(void **)&next = dlsym(RTLD_NEXT, "mmap");
	for (i = 0; i < TIMES; i++) {
		piece[i] = malloc(LARGE * (i + 1));
		if (!piece[i])
			return 1;
		memset(piece[i], (int)i, LARGE * (i + 1));
	}
	for (i = 0; i < TIMES; i++) {
		printf("%d", piece[i][LARGE * i]);
		free(piece[i]);
	}
	return 0;
}
