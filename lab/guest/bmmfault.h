/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of bmmfault share. */
#ifndef BMMFAULT_H
#define BMMFAULT_H

#include <stdint.h>

#define SMALL  4096UL
#define DIRT   0xa5a5a5a5a5a5a5a5UL
#define PARENT 0x1111111111111111UL /* what a fault stores */

#define GRANULE 16UL /* bytes that share a memory tag */

struct work {
	int hugetlb;
	uint64_t bytes;	   /* of a folio */
	uint64_t folios;   /* in all */
	uint64_t batch;	   /* folios at once */
	uint64_t seconds;  /* run this long, failures allowed, */
	const char *until; /* and until this file exists, or NULL */
	int plant;	 /* leave a byte in the last folio: it must be found */
	int faults_only; /* neither check folios nor fill them */
	int tagged;	 /* memory has tags, to be cleared like the data */
};

/* Results; shared with a child that proves its copy. */
struct seen {
	uint64_t folios, refused, ns, wrong;
	uint64_t folio, offset, word; /* the first wrong one */
	uint64_t tags, tags_wrong;
};

enum {
	NO_FD,
	DEMAND_FD,
	FALLOCATE
};

/*
 * struct way - a way to fault folios in
 * @name: on the command line
 * @page: which page is touched first: 0 the first, 1 the middle, 2 the last
 * @fd:   maps a descriptor of hugetlb memory
 * @fault: faults a batch in; 0 if the kernel has no memory for it
 * @stores: leaves PARENT in each folio, in the touched page
 * @forks: a child checks the folios and stores to its copies
 */
struct way {
	const char *name;
	int page;
	int fd;
	int (*fault)(const struct work *work, const struct way *way, char *at,
		     uint64_t folios);
	int stores;
	int forks;
};

#define WAYS 9
extern const struct way ways[WAYS];

struct asked {
	struct work work;
	const struct way *ways[WAYS];
	int n;
};

extern struct seen *seen;

/* bmmfault_options.c */
uint64_t number(const char *text);
int arguments(struct asked *asked, int argc, char **argv);
int usage(void);

/* bmmfault_ways.c */
uint64_t touched_word(const struct work *work, const struct way *way);
int look(const struct work *work, const struct way *way, char *at,
	 uint64_t folios);
char *map(const struct work *work, const struct way *way, char *at,
	  uint64_t bytes);
const struct way *way_named(const char *name, int hugetlb);

/* bmmfault_folio.c */
void folio_init(void);
void fill(uint64_t *to, uint64_t pages);
uint64_t huge_ones(const struct work *work, const char *at, uint64_t folios);
void prove_batch(const struct work *work, const struct way *way, char *at,
		 uint64_t folios);

/* bmmfault_tags.c */
int tags_prot(const struct work *work);
void tag(const struct work *work, char *at, uint64_t bytes);
void prove_tags(const struct work *work, const char *in);

#endif
