// SPDX-License-Identifier: GPL-2.0-only
/* Is it a folio of the requested size, and does it hold only zeros? */
#include <err.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bmmfault.h"

#define CHILD	   0x2222222222222222UL /* what a child stores to its copy */
#define CHILD_WORD 7			/* where, in the last page */

/* bits of /proc/kpageflags */
#define HEAD	(1UL << 15)
#define TAIL	(1UL << 16)
#define HUGETLB (1UL << 17)
#define THP	(1UL << 22)
#define ZERO	(1UL << 24) /* the shared zero page */

static int pagemap, kpageflags;

void folio_init(void)
{
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	kpageflags = open("/proc/kpageflags", O_RDONLY);
	if (pagemap < 0 || kpageflags < 0)
		err(1, "no page flags");
}

/* Page by page: a constant count makes these two loops short. */
void fill(uint64_t *to, uint64_t pages)
{
	for (; pages--; to += SMALL / 8)
		for (unsigned int i = 0; i < SMALL / 8; i++)
			to[i] = DIRT;
}

static int is_zero(const uint64_t *page)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < SMALL / 8; i++)
		any |= page[i];
	return !any;
}

static uint64_t eight(int fd, uint64_t index)
{
	uint64_t value;

	/* beyond the end of memory there are no flags */
	if (pread(fd, &value, 8, index * 8) != 8)
		return 0;
	return value;
}

static uint64_t pfn_of(const char *at)
{
	/* bits 0 to 54; 0 if nothing is mapped */
	return eight(pagemap, (uintptr_t)at / SMALL) & ((1UL << 55) - 1);
}

/* Is this one folio of exactly the requested size, mapped from its start? */
static int is_huge(const struct work *work, const char *at)
{
	uint64_t kind = work->hugetlb ? HUGETLB : THP;
	uint64_t pages = work->bytes / SMALL;
	uint64_t first = pfn_of(at);

	return first && pfn_of(at + work->bytes - SMALL) == first + pages - 1 &&
	       (eight(kpageflags, first) & (HEAD | kind | ZERO)) ==
		       (HEAD | kind) &&
	       (eight(kpageflags, first + 1) & TAIL) &&
	       (eight(kpageflags, first + pages - 1) & TAIL) &&
	       !(eight(kpageflags, first + pages) & TAIL);
}

/* How many folios of the batch have the requested size. */
uint64_t huge_ones(const struct work *work, const char *at, uint64_t folios)
{
	uint64_t huge = 0;

	for (uint64_t i = 0; i < folios; i++)
		huge += is_huge(work, at + i * work->bytes);
	return huge;
}

static void note_wrong(uint64_t folio, uint64_t offset, uint64_t word)
{
	if (!seen->wrong++) {
		seen->folio = seen->folios + folio;
		seen->offset = offset;
		seen->word = word;
	}
}

/*
 * struct mark - a word that was stored
 * @at:   its place in the folio, in words
 * @word: what it holds
 */
struct mark {
	uint64_t at, word;
};

static uint64_t expected(uint64_t at, const struct mark *marks, int stored)
{
	for (int m = 0; m < stored; m++)
		if (marks[m].at == at)
			return marks[m].word;
	return 0;
}

/* Every byte of a folio is zero, except in the words that were stored. */
static void prove(const struct work *work, const uint64_t *in, uint64_t folio,
		  const struct mark *marks, int stored)
{
	for (uint64_t at = 0; at < work->bytes / 8; at += SMALL / 8) {
		if (is_zero(in + at))
			continue;
		for (uint64_t i = at; i < at + SMALL / 8; i++)
			if (in[i] != expected(i, marks, stored))
				note_wrong(folio, i * 8, in[i]);
	}
	prove_tags(work, (const char *)in);
	/* a page that lost its word may look like one never stored to */
	for (int m = 0; m < stored; m++)
		if (!in[marks[m].at])
			note_wrong(folio, marks[m].at * 8, 0);
}

static void prove_all(const struct work *work, const char *at, uint64_t folios,
		      const struct mark *marks, int stored)
{
	for (uint64_t i = 0; i < folios; i++)
		prove(work, (const uint64_t *)(at + i * work->bytes), i, marks,
		      stored);
}

/*
 * A child sees its parent's words and zeros, stores to its own copy, and the
 * parent's folios do not change.
 */
static void prove_forked(const struct work *work, char *at, uint64_t folios,
			 const struct mark *parent)
{
	uint64_t in_last = (work->bytes - SMALL) / 8 + CHILD_WORD;
	struct mark both[] = { *parent, { in_last, CHILD } };
	pid_t pid = fork();
	int status;

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		prove_all(work, at, folios, parent, 1);
		for (uint64_t i = 0; i < folios; i++)
			((uint64_t *)(at + i * work->bytes))[in_last] = CHILD;
		prove_all(work, at, folios, both, 2);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "the child did not end as it should: status %d", status);
	prove_all(work, at, folios, parent, 1);
}

void prove_batch(const struct work *work, const struct way *way, char *at,
		 uint64_t folios)
{
	struct mark mark = { touched_word(work, way), PARENT };

	if (way->forks)
		prove_forked(work, at, folios, &mark);
	else
		prove_all(work, at, folios, &mark, way->stores);
}
