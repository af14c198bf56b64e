// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is it a folio of the requested size, and does it hold only zeros? On arm64
 * also in its memory tags (MTE): four bits for every 16 bytes, stored beside
 * the data and not cleared with it.
 */

#include "bmmfault.h"

#define DIRT	   0xa5a5a5a5a5a5a5a5UL
#define CHILD	   0x2222222222222222UL /* what a child stores to its copy */
#define CHILD_WORD 7			/* where, in the last page */
#define TAG	   5UL			/* what memory is tagged with */

/* bits of /proc/kpageflags */
#define HEAD	(1UL << 15)
#define TAIL	(1UL << 16)
#define HUGETLB (1UL << 17)
#define THP	(1UL << 22)
#define ZERO	(1UL << 24) /* the shared zero page */

/* Page by page: a constant count makes these two loops short. */
void fill(void *at, uint64_t pages)
{
	for (uint64_t *to = at; pages--; to += SMALL / 8)
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

static uint64_t flags_of(uint64_t pfn)
{
	static int kpageflags = -1;
	uint64_t flags;

	if (kpageflags < 0)
		kpageflags = opened("/proc/kpageflags", O_RDONLY);
	/* beyond the end of memory there are no flags */
	return pread(kpageflags, &flags, 8, pfn * 8) == 8 ? flags : 0;
}

/* Is this one folio of exactly the requested size, mapped from its start? */
static int is_huge(const char *at)
{
	uint64_t kind = work.hugetlb ? HUGETLB : THP;
	uint64_t pages = work.bytes / SMALL;
	uint64_t first = pfn_of(at);

	return first && pfn_of(at + work.bytes - SMALL) == first + pages - 1 &&
	       (flags_of(first) & (HEAD | kind | ZERO)) == (HEAD | kind) &&
	       (flags_of(first + 1) & TAIL) &&
	       (flags_of(first + pages - 1) & TAIL) &&
	       !(flags_of(first + pages) & TAIL);
}

uint64_t huge_ones(const char *at, uint64_t folios)
{
	uint64_t huge = 0;

	for (uint64_t i = 0; i < folios; i++)
		huge += is_huge(at + i * work.bytes);
	return huge;
}

#ifdef __aarch64__
#define PROT	  0x20 /* PROT_MTE */
#define TAG_SHIFT 56

/* Pointers keep tag 0, and checking is off unless a process asks for it. */
static void set_tag(char *at, uint64_t tag)
{
	asm volatile(".arch_extension memtag\n\tstg %0, [%1]"
		     :
		     : "r"(tag << TAG_SHIFT), "r"(at)
		     : "memory");
}

static uint64_t get_tag(const char *at)
{
	uint64_t got = 0;

	asm volatile(".arch_extension memtag\n\tldg %0, [%1]"
		     : "+r"(got)
		     : "r"(at)
		     : "memory");
	return got >> TAG_SHIFT;
}
#else
#define PROT 0

static void set_tag(char *at, uint64_t tag)
{
}

static uint64_t get_tag(const char *at)
{
	return 0;
}
#endif

int tags_prot(void)
{
	if (work.tagged && !PROT)
		errx(1, "this architecture has no memory tags");
	return work.tagged ? PROT : 0;
}

void tag(char *at, uint64_t bytes)
{
	for (uint64_t done = 0; work.tagged && done < bytes; done += GRANULE)
		set_tag(at + done, TAG);
}

static void prove_tags(const char *in)
{
	for (uint64_t at = 0; work.tagged && at < work.bytes; at += GRANULE) {
		seen->tags_wrong += get_tag(in + at) != 0;
		seen->tags++;
	}
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
static void prove(const uint64_t *in, uint64_t folio, const struct mark *marks,
		  int stored)
{
	for (uint64_t at = 0; at < work.bytes / 8; at += SMALL / 8) {
		if (is_zero(in + at))
			continue;
		for (uint64_t i = at; i < at + SMALL / 8; i++)
			if (in[i] != expected(i, marks, stored))
				note_wrong(folio, i * 8, in[i]);
	}
	prove_tags((const char *)in);
	/* a page that lost its word may look like one never stored to */
	for (int m = 0; m < stored; m++)
		if (!in[marks[m].at])
			note_wrong(folio, marks[m].at * 8, 0);
}

static void prove_all(const char *at, uint64_t folios, const struct mark *marks,
		      int stored)
{
	for (uint64_t i = 0; i < folios; i++)
		prove((const uint64_t *)(at + i * work.bytes), i, marks, stored);
}

void prove_batch(char *at, uint64_t folios, uint64_t touched, int stored,
		 int forks)
{
	uint64_t in_last = (work.bytes - SMALL) / 8 + CHILD_WORD;
	struct mark both[] = { { touched, PARENT }, { in_last, CHILD } };
	pid_t pid = forks ? fork() : 1;

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		prove_all(at, folios, both, 1);
		for (uint64_t i = 0; i < folios; i++)
			((uint64_t *)(at + i * work.bytes))[in_last] = CHILD;
		prove_all(at, folios, both, 2);
		_exit(0);
	}
	if (forks)
		wait_for(pid);
	prove_all(at, folios, both, stored);
}
