/* SPDX-License-Identifier: GPL-2.0-only */
/* fault_proof.h - what a batch of bmmfault holds, and whether that is right */
#ifndef FAULT_PROOF_H
#define FAULT_PROOF_H

#include <linux/kernel-page-flags.h>
#include <sys/prctl.h>

#include "bulkmm.h"
#include "guest.h"
#include "measure.h"

#define PARENT	   0x1111111111111111UL /* what a fault stores */
#define GRANULE	   16UL			/* bytes that share a memory tag */
#define DIRT	   0xa5a5a5a5a5a5a5a5UL
#define CHILD	   0x2222222222222222UL /* what a child stores to its copy */
#define CHILD_WORD 7			/* where, in the last page */
#define TAG	   5UL			/* what memory is tagged with */
#define FLAG(name) (1UL << KPF_##name)	/* of /proc/kpageflags */

/* What to do, by the command's options. */
static struct work {
	int hugetlb;
	uint64_t bytes;	   /* of a folio */
	uint64_t folios;   /* -n: in all, by all ways in turn */
	uint64_t batch;	   /* -b: folios at once */
	uint64_t seconds;  /* -t: run this long, failures allowed, */
	const char *until; /* -u: and until this file exists, or NULL */
	int plant; /* -p: leave a byte in the last folio: it must be found */
	int faults_only; /* -f: neither check folios nor fill them */
	int tagged;	 /* -m: memory has tags, to be cleared like the data */
	int unreserved;	 /* -c: hugetlb pages; and count a batch's faults */
	int apart; /* -k: each batch in a process of its own, which may fail */
} work = { .folios = 1, .batch = 1 };

/* What was seen; shared with a child that proves its copy. */
static struct seen {
	uint64_t folios, refused, ns, free_ns, wrong;
	uint64_t folio, offset, word; /* the first wrong one */
	uint64_t tags, tags_wrong;
	uint64_t faults; /* of writes to a batch that is there */
} *seen;

static uint64_t begun;
static int file = -1; /* of the batch, if it is of a file */

/* What is done until end() is timed. */
static void begin(void)
{
	begun = now();
}

static void end(void)
{
	seen->ns += now() - begun;
}

/* Frees a batch, which is timed by itself. */
static void unmap(char *room, uint64_t bytes)
{
	uint64_t start = now();

	munmap(room, bytes);
	if (file >= 0)
		close(file);
	file = -1;
	seen->free_ns += now() - start;
}

/* Page by page: a constant count makes these two loops short. */
static void fill(void *at, uint64_t pages)
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
	uint64_t kind = work.hugetlb ? FLAG(HUGE) : FLAG(THP);
	uint64_t head = FLAG(COMPOUND_HEAD), tail = FLAG(COMPOUND_TAIL);
	uint64_t pages = work.bytes / SMALL;
	uint64_t first = pfn_of(at);

	/* nor is it the shared zero page */
	return first && pfn_of(at + work.bytes - SMALL) == first + pages - 1 &&
	       (flags_of(first) & (head | kind | FLAG(ZERO_PAGE))) ==
		       (head | kind) &&
	       (flags_of(first + 1) & tail) &&
	       (flags_of(first + pages - 1) & tail) &&
	       !(flags_of(first + pages) & tail);
}

static uint64_t huge_ones(const char *at, uint64_t folios)
{
	uint64_t huge = 0;

	for (uint64_t i = 0; i < folios; i++)
		huge += is_huge(at + i * work.bytes);
	return huge;
}

#ifdef __aarch64__
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
#define PROT_MTE 0

static void set_tag(char *at, uint64_t tag)
{
}

static uint64_t get_tag(const char *at)
{
	return 0;
}
#endif

static int tags_prot(void)
{
	if (work.tagged && !PROT_MTE)
		errx(1, "this architecture has no memory tags");
	return work.tagged ? PROT_MTE : 0;
}

/* Like the pattern, tags are left in memory that is freed. */
static void tag(char *at, uint64_t bytes)
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

/*
 * Every byte of a batch is zero, but for the word that was stored, if @stored;
 * with @forks the same in a child, which stores to its copies.
 */
static void prove_batch(char *at, uint64_t folios, uint64_t touched, int stored,
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

#endif
