// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * An allocator for LD_PRELOAD that maps under its own lock, as many do. A call
 * from within that mmap() would never return: it ends the program.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK ((size_t)96 << 20)
#define HEAD  ((size_t)16) /* before each piece: its size */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread __attribute__((__tls_model__("initial-exec"))) int inside;
static char *next, *end;

static char *take(size_t size)
{
	char *p;

	if (size > (size_t)(end - next)) {
		next = mmap(NULL, size + CHUNK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (next == MAP_FAILED)
			abort();
		end = next + size + CHUNK;
	}
	p = next;
	next += size;
	return p;
}

void *malloc(size_t size)
{
	char *p;

	if (inside)
		kill(getpid(), SIGTERM);
	pthread_mutex_lock(&lock);
	inside = 1;
	p = take(HEAD + ((size + HEAD - 1) & -HEAD)) + HEAD;
	inside = 0;
	pthread_mutex_unlock(&lock);
	*(size_t *)(void *)(p - HEAD) = size;
	return p;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); /* mapped memory is zero */
}

void *realloc(void *old, size_t size)
{
	size_t had = old ? *(size_t *)(void *)((char *)old - HEAD) : 0;
	void *p = malloc(size);

	return had ? memcpy(p, old, had < size ? had : size) : p;
}

void free(void *p)
{
	(void)p;
}
