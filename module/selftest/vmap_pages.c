// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page arrays of a given shape.
 *
 * A shape is a list of words ORDERxCOUNT, followed by letters: c for compound
 * pages, p for pages split as perf's AUX buffers are, s for blocks in random
 * order. "8x96 4x384s 0x2048s" is what a dma-buf heap gets in fragmented
 * memory.
 */
#include <linux/gfp.h>
#include <linux/slab.h>

#include "vmap.h"

#define MOST_BLOCKS (1UL << 16)
#define SEED	    1 /* the same order of blocks in every run */

struct part {
	unsigned int order;
	unsigned long count;
	bool compound, split, shuffled;
};

static int parse_part(const char *word, struct part *part)
{
	int at = 0;

	*part = (struct part){};
	if (sscanf(word, "%ux%lu%n", &part->order, &part->count, &at) < 2)
		return -EINVAL;
	for (word += at; *word; word++) {
		part->compound |= *word == 'c';
		part->split |= *word == 'p';
		part->shuffled |= *word == 's';
		if (!strchr("cps", *word))
			return -EINVAL;
	}
	if (part->order > MAX_PAGE_ORDER || part->count > MOST_BLOCKS)
		return -EINVAL;
	return part->compound && part->split ? -EINVAL : 0;
}

static struct page *allocate(const struct part *part)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN;
	void *exact;

	if (part->split) {
		exact = alloc_pages_exact(PAGE_SIZE << part->order, gfp);
		return exact ? virt_to_page(exact) : NULL;
	}
	return alloc_pages(part->compound ? gfp | __GFP_COMP : gfp, part->order);
}

static void release(const struct bmm_block *block)
{
	if (block->split)
		free_pages_exact(page_address(block->page),
				 PAGE_SIZE << block->order);
	else
		__free_pages(block->page, block->order);
}

static void shuffle(struct bmm_block *blocks, unsigned long nr)
{
	struct bmm_random random = { SEED };
	u32 with;

	for (; nr > 1; nr--) {
		with = bmm_random_below(&random, nr);
		swap(blocks[nr - 1], blocks[with]);
	}
}

static int add(struct bmm_pages *pages, const struct part *part)
{
	struct bmm_block *blocks = pages->blocks + pages->nr_blocks;
	unsigned long i;

	if (pages->nr_blocks + part->count > MOST_BLOCKS)
		return -E2BIG;
	for (i = 0; i < part->count; i++) {
		blocks[i].page = allocate(part);
		if (!blocks[i].page)
			return -ENOMEM;
		blocks[i].order = part->order;
		blocks[i].split = part->split;
		pages->nr_blocks++;
		pages->nr += 1UL << part->order;
	}
	if (part->shuffled)
		shuffle(blocks, part->count);
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
	char *copy = kstrdup(shape, GFP_KERNEL), *rest = copy, *word;
	struct part part;
	int err = 0;

	*pages = (struct bmm_pages){};
	if (!copy)
		return -ENOMEM;
	pages->blocks = kvcalloc(MOST_BLOCKS, sizeof(*pages->blocks),
				 GFP_KERNEL);
	if (!pages->blocks)
		err = -ENOMEM;
	while (!err && (word = strsep(&rest, " \n"))) {
		if (!*word)
			continue;
		err = parse_part(word, &part);
		if (!err)
			err = add(pages, &part);
	}
	if (!err)
		err = pages->nr ? fill(pages) : -EINVAL;
	if (err)
		bmm_pages_free(pages);
	kfree(copy);
	return err;
}

void bmm_pages_free(struct bmm_pages *pages)
{
	while (pages->nr_blocks)
		release(&pages->blocks[--pages->nr_blocks]);
	kvfree(pages->blocks);
	kvfree(pages->array);
	*pages = (struct bmm_pages){};
}
