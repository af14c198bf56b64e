/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of bmmfault share. */
#ifndef BMMFAULT_H
#define BMMFAULT_H

#include "guest.h"

#define PARENT 0x1111111111111111UL /* what a fault stores */

#define GRANULE 16UL /* bytes that share a memory tag */

/* What to do, by the command's options. */
extern struct work {
	int hugetlb;
	uint64_t bytes;	   /* of a folio */
	uint64_t folios;   /* -n: in all */
	uint64_t batch;	   /* -b: folios at once */
	uint64_t seconds;  /* -t: run this long, failures allowed, */
	const char *until; /* -u: and until this file exists, or NULL */
	int plant; /* -p: leave a byte in the last folio: it must be found */
	int faults_only; /* -f: neither check folios nor fill them */
	int tagged;	 /* -m: memory has tags, to be cleared like the data */
} work;

/* What was seen; shared with a child that proves its copy. */
extern struct seen {
	uint64_t folios, refused, ns, wrong;
	uint64_t folio, offset, word; /* the first wrong one */
	uint64_t tags, tags_wrong;
} *seen;

/* Fill memory with what a page must not have when it is new. */
void fill(void *to, uint64_t pages);

/* How many folios of a batch have the requested size. */
uint64_t huge_ones(const char *at, uint64_t folios);

/*
 * Every byte of a batch is zero, but for the word that was stored, if @stored;
 * with
 * @forks the same in a child, which stores to its copies.
 */
void prove_batch(char *at, uint64_t folios, uint64_t touched, int stored,
		 int forks);

/* Protection bits of memory that is to have tags. */
int tags_prot(void);

/* Like the pattern, tags are left in memory that is freed. */
void tag(char *at, uint64_t bytes);

#endif
