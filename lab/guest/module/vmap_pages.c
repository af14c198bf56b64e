// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page arrays of a given shape.
 *
 * A shape is a list of words ORDERxCOUNT, followed by a letter: c for compound
 * pages, s for blocks in random order. "8x96 4x384s 0x2048s" is what a dma-buf
 * heap gets in fragmented memory.
 */
#include <linux/gfp.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "vmap.h"

#define MOST_BLOCKS (1UL << 16)
#define SEED	    1 /* the same order of blocks in every run */

static void shuffle(struct bmm_block *blocks, unsigned long nr)
{
	struct rnd_state random;
	u32 with;

	prandom_seed_state(&random, SEED);
	for (; nr > 1; nr--) {
		with = bmm_random_below(&random, nr);
		swap(blocks[nr - 1], blocks[with]);
	}
}

/* Allocates the blocks of a shape's word. */
static int add(struct bmm_pages *pages, const char *word)
{
	struct bmm_block *blocks = pages->blocks + pages->nr_blocks;
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN;
	unsigned long count, i;
	unsigned int order;
	char letter = ' ';

	if (sscanf(word, "%ux%lu%c", &order, &count, &letter) < 2 ||
	    order > MAX_PAGE_ORDER || !strchr("cs \n", letter))
		return -EINVAL;
	if (count > MOST_BLOCKS - pages->nr_blocks)
		return -E2BIG;
	if (letter == 'c')
		gfp |= __GFP_COMP;
	for (i = 0; i < count; i++) {
		blocks[i].page = alloc_pages(gfp, order);
		if (!blocks[i].page)
			return -ENOMEM;
		blocks[i].order = order;
		pages->nr_blocks++;
		pages->nr += 1UL << order;
	}
	if (letter == 's')
		shuffle(blocks, count);
	return 0;
}

static int fill(struct bmm_pages *pages)
{
	unsigned long i, n, at = 0;

	pages->array = kvmalloc_array(pages->nr, sizeof(*pages->array),
				      GFP_KERNEL);
	if (!pages->array)
		return -ENOMEM;
	for (i = 0; i < pages->nr_blocks; i++)
		for (n = 0; n < 1UL << pages->blocks[i].order; n++)
			pages->array[at++] = pages->blocks[i].page + n;
	return 0;
}

/* Allocates pages of a shape; on -EINVAL, -E2BIG or -ENOMEM, none. */
int bmm_pages_make(struct bmm_pages *pages, const char *shape)
{
	const char *word;
	int err = 0;

	*pages = (struct bmm_pages){};
	pages->blocks = kvcalloc(MOST_BLOCKS, sizeof(*pages->blocks),
				 GFP_KERNEL);
	if (!pages->blocks)
		err = -ENOMEM;
	for (word = skip_spaces(shape); !err && *word;
	     word = skip_spaces(word)) {
		err = add(pages, word);
		word += strcspn(word, " \n");
	}
	if (!err)
		err = pages->nr ? fill(pages) : -EINVAL;
	if (err)
		bmm_pages_free(pages);
	return err;
}

void bmm_pages_free(struct bmm_pages *pages)
{
	const struct bmm_block *block;

	while (pages->nr_blocks) {
		block = &pages->blocks[--pages->nr_blocks];
		__free_pages(block->page, block->order);
	}
	kvfree(pages->blocks);
	kvfree(pages->array);
	*pages = (struct bmm_pages){};
}

/*
 * Random page arrays, made of stretches: runs forwards and backwards, every
 * other page, two blocks interleaved, one page repeated, and runs whose offset
 * within 2 MiB matches that in an aligned mapping, as a PMD mapping needs.
 */
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

/* The same for the same seed, on every kernel. */
u32 bmm_random_below(struct rnd_state *random, u32 limit)
{
	return limit ? prandom_u32_state(random) % limit : 0;
}

/* Most arrays are short, some are long enough for PMD mappings. */
static unsigned long length(struct rnd_state *random, unsigned long most)
{
	u32 dice = bmm_random_below(random, 100);
	unsigned long limit = dice < 80 ? 64 : dice < 95 ? 700 : most;

	return 1 + bmm_random_below(random, min(limit, most));
}

/* Half are among the first blocks: a shape lists the largest ones first. */
static const struct bmm_block *pick(struct rnd_state *random,
				    const struct bmm_pages *from)
{
	unsigned long few = min(from->nr_blocks, LARGEST);
	bool large = bmm_random_below(random, 2);

	return &from->blocks[bmm_random_below(random,
					      large ? few : from->nr_blocks)];
}

/* Writes one stretch of at most @room pages; returns how many it wrote. */
static unsigned long stretch(struct rnd_state *random,
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
unsigned long bmm_random_array(struct rnd_state *random,
			       const struct bmm_pages *from,
			       struct page **array, unsigned long most)
{
	unsigned long nr = length(random, most), at = 0;

	while (at < nr)
		at += stretch(random, from, array, at, nr - at);
	return nr;
}
