// SPDX-License-Identifier: GPL-2.0-only
/*
 * One bit for each hugetlb page, by its size and PFN, in chunks of a page. They
 * are allocated when memory is about to be zeroed and freed all at once, so
 * that the rest can be done under hugetlb_lock. 1 MiB is enough for 16 TiB of
 * pages of 2 MiB, and 3 KiB for the tree that finds it.
 *
 * While it is closed, no page is known, nor becomes so. A page that somebody
 * takes and does not have cleared keeps its bit until it comes back: bits are
 * not the pages that are ready, but at least as many. Everybody finds chunks
 * and uses them under RCU, for which disabled interrupts are enough, so that
 * those who saw it open have left when a grace period has passed.
 */
#include <linux/bitmap.h>
#include <linux/hugetlb.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/xarray.h>

#include "prezero_bitmap.h"

#define CHUNK_BITS (PAGE_SIZE * BITS_PER_BYTE)
#define ORDERS	   (PUD_SHIFT - PAGE_SHIFT + 1) /* no huge page is larger */

atomic_long_t *bmm_known_on_node;

static struct xarray known_chunks[ORDERS];
static bool opened;

static unsigned long known_index(struct folio *folio, unsigned int order)
{
	return folio_pfn(folio) >> order;
}

static unsigned long known_bit(struct folio *folio, unsigned int order)
{
	return known_index(folio, order) % CHUNK_BITS;
}

static unsigned long *known_chunk(struct folio *folio, unsigned int order)
{
	/* pairs with bmm_known_open() */
	if (!smp_load_acquire(&opened))
		return NULL;
	return xa_load(&known_chunks[order],
		       known_index(folio, order) / CHUNK_BITS);
}

/** bmm_known_init() - called once, before the others; 0 or -ENOMEM */
int bmm_known_init(void)
{
	unsigned int order;

	for (order = 0; order < ORDERS; order++)
		xa_init(&known_chunks[order]);
	bmm_known_on_node = kcalloc(ORDERS * nr_node_ids,
				    sizeof(*bmm_known_on_node), GFP_KERNEL);
	return bmm_known_on_node ? 0 : -ENOMEM;
}

/* Frees the chunks of a size, which nobody uses; returns how many bits were set. */
static unsigned long known_wipe(unsigned int order)
{
	unsigned long index, pages = 0;
	unsigned long *chunk;
	int nid;

	xa_for_each(&known_chunks[order], index, chunk)
	{
		xa_erase(&known_chunks[order], index);
		pages += bitmap_weight(chunk, CHUNK_BITS);
		free_page((unsigned long)chunk);
	}
	for (nid = 0; nid < nr_node_ids; nid++)
		atomic_long_set(bmm_known_count(order, nid), 0);
	return pages;
}

/**
 * bmm_known_stop() - no page is known from now on
 *
 * Context: any. Bits stay and are no longer cleared when pages come back, so
 * bmm_known_close() has to come before it opens again.
 */
void bmm_known_stop(void)
{
	WRITE_ONCE(opened, false);
}

/**
 * bmm_known_close() - forget all pages
 *
 * Context: may sleep; callers serialise. Comes before pages are taken or
 * returned unreported, and before bmm_known_open().
 *
 * Return: how many pages were known.
 */
unsigned long bmm_known_close(void)
{
	unsigned long pages = 0;
	unsigned int order;

	bmm_known_stop();
	synchronize_rcu(); /* no CPU sees it open, or uses a chunk, after this */
	for (order = 0; order < ORDERS; order++)
		pages += known_wipe(order);
	return pages;
}

/**
 * bmm_known_open() - begin, with no page
 *
 * Context: as bmm_known_close(), which comes before it whenever it was stopped:
 * bits that were left may be wrong by now. Comes after the stores by which
 * pages that are taken, returned or removed are reported. Who remembers a page
 * returns it next, and who takes it from there has it by hugetlb_lock, and so
 * sees those stores.
 */
void bmm_known_open(void)
{
	smp_store_release(&opened, true);
}

/** bmm_known_exit() - free everything; nobody calls any more */
void bmm_known_exit(void)
{
	if (bmm_known_on_node)
		bmm_known_close();
	kfree(bmm_known_on_node);
}

bool bmm_known_opened(void)
{
	return READ_ONCE(opened);
}

/**
 * bmm_known_prepare() - allocate what bmm_known_set() needs for a page
 * @folio: the page
 *
 * Context: may sleep. Return: 0 or -ENOMEM.
 */
int bmm_known_prepare(struct folio *folio)
{
	unsigned int order = folio_order(folio);
	unsigned long index = known_index(folio, order) / CHUNK_BITS;
	struct xarray *chunks = &known_chunks[order];
	void *chunk, *before;

	if (xa_load(chunks, index))
		return 0;
	chunk = (void *)get_zeroed_page(GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	before = xa_cmpxchg(chunks, index, NULL, chunk, GFP_KERNEL);
	if (before)
		free_page((unsigned long)chunk);
	return xa_err(before);
}

/** bmm_known_test() - whether a page is known to be zero */
bool bmm_known_test(struct folio *folio, unsigned int order)
{
	unsigned long *chunk;
	bool set;

	rcu_read_lock();
	chunk = known_chunk(folio, order);
	set = chunk && test_bit(known_bit(folio, order), chunk);
	rcu_read_unlock();
	return set;
}

/** bmm_known_set() - remember a page; false: nobody prepared, or it is closed */
bool bmm_known_set(struct folio *folio, unsigned int order)
{
	unsigned long *chunk;

	rcu_read_lock();
	chunk = known_chunk(folio, order);
	if (chunk && !test_and_set_bit(known_bit(folio, order), chunk))
		atomic_long_inc(bmm_known_count(order, folio_nid(folio)));
	rcu_read_unlock();
	return chunk;
}

/** bmm_known_clear() - forget a page; returns whether it was known */
bool bmm_known_clear(struct folio *folio, unsigned int order)
{
	unsigned long *chunk, bit = known_bit(folio, order);
	bool was;

	rcu_read_lock();
	chunk = known_chunk(folio, order);
	was = chunk && test_bit(bit, chunk) && test_and_clear_bit(bit, chunk);
	if (was)
		atomic_long_dec(bmm_known_count(order, folio_nid(folio)));
	rcu_read_unlock();
	return was;
}

/** bmm_known_show() - a line "KIB NODE BITS" for each size and node with any */
ssize_t bmm_known_show(char *buf)
{
	unsigned int order;
	ssize_t at = 0;
	long pages;
	int nid;

	for (order = 0; order < ORDERS; order++) {
		for_each_online_node(nid)
		{
			pages = atomic_long_read(bmm_known_count(order, nid));
			if (pages > 0)
				at += sysfs_emit_at(buf, at, "%lu %d %ld\n",
						    PAGE_SIZE << order >> 10,
						    nid, pages);
		}
	}
	return at;
}
