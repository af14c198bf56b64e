// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random page arrays, made of stretches: runs forwards and backwards, every
 * other page, two blocks interleaved, one page repeated, and runs whose offset
 * within 2 MiB matches that in an aligned mapping, as a PMD mapping needs.
 */
#include "vmap.h"

#define LARGEST 12UL

enum stretch {
	FORWARDS,
	BACKWARDS,
	EVERY_OTHER,
	INTERLEAVED,
	REPEATED,
	IN_PHASE, /* three times as often as any other */
	STRETCHES = IN_PHASE + 3,
};

/* xorshift64*: the same arrays for the same seed, on every kernel. */
static u32 next(struct bmm_random *random)
{
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return (random->state * 0x2545f4914f6cdd1dULL) >> 32;
}

u32 bmm_random_below(struct bmm_random *random, u32 limit)
{
	return limit ? next(random) % limit : 0;
}

/* Most arrays are short, some are long enough for PMD mappings. */
static unsigned long length(struct bmm_random *random, unsigned long most)
{
	u32 dice = bmm_random_below(random, 100);
	unsigned long limit = dice < 80 ? 64 : dice < 95 ? 700 : most;

	return 1 + bmm_random_below(random, min(limit, most));
}

/* Half are among the first blocks: a shape lists the largest ones first. */
static const struct bmm_block *pick(struct bmm_random *random,
				    const struct bmm_pages *from)
{
	unsigned long few = min(from->nr_blocks, LARGEST);
	bool large = bmm_random_below(random, 2);

	return &from->blocks[bmm_random_below(random,
					      large ? few : from->nr_blocks)];
}

/* Writes one stretch of at most @room pages; returns how many it wrote. */
static unsigned long stretch(struct bmm_random *random,
			     const struct bmm_pages *from, struct page **array,
			     unsigned long at, unsigned long room)
{
	const struct bmm_block *one = pick(random, from);
	const struct bmm_block *two = pick(random, from);
	enum stretch how = min_t(u32, bmm_random_below(random, STRETCHES),
				 IN_PHASE);
	unsigned long pages = 1UL << one->order;
	unsigned long first = how == IN_PHASE ? at % pages :
						bmm_random_below(random, pages);
	unsigned long other = (1UL << two->order) - 1, left = pages - first;
	unsigned long i, nr = how == IN_PHASE ?
				      left :
				      1 + bmm_random_below(random, left);

	nr = min(nr, room);
	for (i = 0; i < nr; i++) {
		unsigned long n = first + i;

		if (how == BACKWARDS)
			n = first + nr - 1 - i;
		else if (how == EVERY_OTHER)
			n = first + (2 * i) % left;
		else if (how == REPEATED)
			n = first;
		array[at + i] = how == INTERLEAVED && i % 2 ?
					two->page + (i & other) :
					one->page + n;
	}
	return nr;
}

/*
 * Fills an array with at most @most pages, of which one may be taken more than
 * once; returns how many, at least one.
 */
unsigned long bmm_random_array(struct bmm_random *random,
			       const struct bmm_pages *from,
			       struct page **array, unsigned long most)
{
	unsigned long nr = length(random, most), at = 0;

	while (at < nr)
		at += stretch(random, from, array, at, nr - at);
	return nr;
}
