// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A pool of buffers that are zero when they are handed out.
 *
 * A returned buffer is zeroed ahead of use, bypassing the cache: nobody reads
 * it soon, and the program's working set stays cached. If buffers are taken
 * faster than that, one is zeroed when handed out, and left in the cache for
 * its next user.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bulkmm.h>

#define BUFFER	(2UL << 20) /* one huge page */
#define BUFFERS 16

struct pool {
	void *zeroed[BUFFERS], *used[BUFFERS];
	int zeroed_nr, used_nr;
	int ahead, at_once; /* how often each way was taken */
};

static void *huge_pages(size_t len)
{
	void *p = aligned_alloc(BUFFER, len);

	if (p)
		madvise(p, len, MADV_HUGEPAGE); /* a hint: small ones will do */
	return p;
}

static int pool_init(struct pool *pool)
{
	char *memory = huge_pages(BUFFER * BUFFERS);
	int i;

	memset(pool, 0, sizeof(*pool));
	if (!memory)
		return -1;
	for (i = 0; i < BUFFERS; i++)
		pool->used[pool->used_nr++] = memory + i * BUFFER;
	return 0;
}

/* For idle time; what it writes is visible when it returns. */
static void pool_prepare(struct pool *pool)
{
	while (pool->used_nr) {
		void *buffer = pool->used[--pool->used_nr];

		bmm_clear_streaming(buffer, BUFFER);
		pool->zeroed[pool->zeroed_nr++] = buffer;
		pool->ahead++;
	}
	bmm_drain();
}

static void *pool_take(struct pool *pool)
{
	void *buffer;

	if (pool->zeroed_nr)
		return pool->zeroed[--pool->zeroed_nr];
	if (!pool->used_nr)
		return NULL;
	buffer = pool->used[--pool->used_nr];
	bmm_clear(buffer, BUFFER);
	pool->at_once++;
	return buffer;
}

static void pool_give(struct pool *pool, void *buffer)
{
	pool->used[pool->used_nr++] = buffer;
}

/* Take some, check every byte, leave them dirty; returns how many are bad. */
static int use(struct pool *pool, int count)
{
	void *taken[BUFFERS];
	int i, bad = 0;

	for (i = 0; i < count; i++) {
		char *p = taken[i] = pool_take(pool);

		bad += *p || memcmp(p, p + 1, BUFFER - 1);
		memset(p, 0xa5, BUFFER);
	}
	while (i--)
		pool_give(pool, taken[i]);
	return bad;
}

int main(void)
{
	struct pool pool;
	int bad;

	if (pool_init(&pool)) {
		fputs("pool: no memory\n", stderr);
		return 1;
	}
	pool_prepare(&pool);
	bad = use(&pool, BUFFERS); /* all are zeroed ahead */
	bad += use(&pool, 4);	   /* these when taken */
	pool_prepare(&pool);
	bad += use(&pool, BUFFERS);
	printf("zeroed ahead of use: %d, at once: %d, not zero: %d\n",
	       pool.ahead, pool.at_once, bad);
	return bad != 0;
}
