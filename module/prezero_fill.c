// SPDX-License-Identifier: GPL-2.0-only
/*
 * The filler of path prezero: a task inside a write to sysfs, which ends with
 * its portion, by a signal, or when the path goes off. It takes one page after
 * another off the free list, in the way that migration gets a target, zeroes it
 * and drops the only reference. So the page is in no file and in no page table:
 * nobody can map, pin or migrate it, and a filler that dies has no more than
 * one to drop.
 */
#include <linux/cleanup.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/static_call.h>

#include "prezero.h"
#include "prezero_bitmap.h"
#include "prototype.h"
#include "trace.h"
#include "clear_common.h"

#define UNIT	SZ_256K /* bytes between two chances to reschedule, or to end */
#define SKIPPED 8	/* known pages in a row that a filler passes by */
#define TRIES	3	/* others may hold a reference for a moment */

/*
 * What a filler works on.
 * @h:     the pool
 * @nid:   the node
 * @floor: pages of the node that stay free at every moment, beyond as many as
 *         are reserved on all nodes
 */
struct fill {
	struct hstate *h;
	int nid;
	unsigned long floor;
};

/*
 * The page that this CPU's task is dropping, with preemption disabled.
 * @next: another one is taken next
 */
struct fill_return {
	const struct folio *folio;
	bool next;
};

static DEFINE_PER_CPU(struct fill_return, filler_return);

/*
 * So that two fillers do not both take what only one may, and each takes the
 * page that its return has brought to the front.
 */
static DEFINE_MUTEX(fill_lock);

/* Frees of the kernel reach the hook: seen since the module was loaded. */
static bool hook_proven;

/**
 * bmm_filler_page_returned() - a filler's page has reached the free list by the
 * hook
 *
 * Context: as bmm_filler_is_returning(), after it.
 *
 * Return: whether the filler takes another one next.
 */
bool bmm_filler_page_returned(void)
{
	WRITE_ONCE(hook_proven, true);
	return __this_cpu_read(filler_return.next);
}

/**
 * bmm_filler_is_returning() - whether a filler returns a page
 * @folio: a page that is on its way to the free list, or out of the pool
 *
 * Answers once. Context: interrupts disabled.
 */
bool bmm_filler_is_returning(const struct folio *folio)
{
	if (likely(__this_cpu_read(filler_return.folio) != folio))
		return false;
	__this_cpu_write(filler_return.folio, NULL);
	return true;
}

/*
 * Drops our reference. If it is not the last one, the page is not ours to
 * announce: whoever has that returns it, others may use it, and return it here
 * before we look again. Under fill_lock.
 */
static void fill_put(struct folio *folio, bool next)
{
	guard(preempt)();
	if (!folio_put_testzero(folio))
		return;
	this_cpu_write(filler_return.next, next);
	this_cpu_write(filler_return.folio, folio);
	__folio_put(folio);
	this_cpu_write(filler_return.folio, NULL);
}

/*
 * Whether the node can do without a page, or without the one that we have
 * taken. On which node somebody needs what is reserved nobody knows; with a
 * policy that binds it may be this one for all, and a page that is missing
 * there is a SIGBUS. Where surplus pages are in use, the next page that is
 * freed leaves the pool (free_huge_folio()), so none is taken there.
 */
static bool fill_allowed(const struct fill *fill, unsigned long taken)
{
	unsigned long free = READ_ONCE(fill->h->free_huge_pages_node[fill->nid]);
	unsigned long reserved = READ_ONCE(fill->h->resv_huge_pages);

	free += taken;
	return !READ_ONCE(fill->h->surplus_huge_pages_node[fill->nid]) &&
	       free > reserved && free - reserved > fill->floor;
}

/*
 * Takes the first page of a node's free list; NULL if it is not allowed, if no
 * page is fit, or if the task's cpuset lacks the node.
 *
 * Where the kernel cannot take any, as all are broken, isolated, or gone since
 * we looked, it allocates one, which leaves with its last reference. That must
 * be a hugetlb page, too: __GFP_COMP, which alloc_buddy_hugetlb_folio() adds by
 * itself (6.12) and alloc_buddy_frozen_folio() does not (7.3, mm/hugetlb.c). The
 * kernel's own callers have htlb_alloc_mask(), which uses a variable that is not
 * exported (7.3); for what can be allocated here, pages that can be moved and
 * are not gigantic (alloc_migrate_hugetlb_folio()), it is the same. This is
 * bound to the node, and without reclaim, for nobody needs what is allocated.
 * What may not reclaim is taken to be atomic and may use what is reserved for
 * that, unless it has __GFP_NOMEMALLOC (mm/page_alloc.c, 6.12 and 7.3).
 */
#define FILL_GFP                                                              \
	((GFP_HIGHUSER_MOVABLE | __GFP_COMP | __GFP_NOWARN | __GFP_THISNODE | \
	  __GFP_NOMEMALLOC) &                                                 \
	 ~__GFP_RECLAIM)

static struct folio *fill_take(const struct fill *fill)
{
	nodemask_t only = nodemask_of_node(fill->nid);
	struct folio *folio;

	if (!fill_allowed(fill, 0))
		return NULL;
	folio = static_call(bmm_take_huge)(fill->h, fill->nid, &only, FILL_GFP,
					   false);
	if (folio)
		bmm_count_hugetlb(folio);
	if (folio && folio_test_hugetlb_temporary(folio)) {
		folio_put(folio);
		return NULL;
	}
	return folio;
}

/* Returns the page that a filler has, if any, and takes the next. */
static struct folio *fill_swap(const struct fill *fill, struct folio *folio)
{
	guard(mutex)(&fill_lock);
	if (folio)
		fill_put(folio, true);
	return fill_take(fill);
}

/* Returns the page that a filler has, and takes none. */
static void fill_return_page(struct folio *folio, bool next)
{
	guard(mutex)(&fill_lock);
	fill_put(folio, next);
}

/* Returns 0, or the reason to end: also that others need the page. */
static int fill_zero(const struct fill *fill, struct folio *folio)
{
	size_t at, unit, bytes = folio_size(folio);
	char *base = folio_address(folio);

	for (at = 0; at < bytes; at += unit) {
		unit = min_t(size_t, UNIT, bytes - at);
		bmm_zero(&bmm_prezero_path, BMM_CLEAR_STREAMING, base + at,
			 unit);
		cond_resched();
		if (signal_pending(current))
			return -EINTR;
		if (!bmm_known_opened())
			return -ENODEV;
		if (!fill_allowed(fill, 1))
			return -EAGAIN;
	}
	return 0;
}

/* Takes a page and returns it; 0, or -EAGAIN if there is none, or -ENODATA. */
static int fill_probe_hook(const struct fill *fill)
{
	struct folio *folio;
	int attempt;

	for (attempt = 0; attempt < TRIES && !READ_ONCE(hook_proven);
	     attempt++) {
		folio = fill_swap(fill, NULL);
		if (!folio)
			return -EAGAIN;
		fill_return_page(folio, false);
	}
	return READ_ONCE(hook_proven) ? 0 : -ENODATA;
}

/**
 * bmm_filler_probe_hook() - check that frees reach the hook
 *
 * The compiler may have inlined its function. If no pool has a page, the first
 * filler does it. Return: 0 or -ENODATA.
 */
int bmm_filler_probe_hook(void)
{
	unsigned int order;
	struct fill fill = {};

	for (order = 1; order <= PUD_SHIFT - PAGE_SHIFT; order++) {
		fill.h = static_call(bmm_find_pool)(PAGE_SIZE << order);
		if (!fill.h)
			continue;
		for_each_online_node(fill.nid)
		{
			if (fill_probe_hook(&fill) != -EAGAIN)
				return READ_ONCE(hook_proven) ? 0 : -ENODATA;
		}
	}
	return 0;
}

/* 0 if the page is zero now, -EEXIST if it was known to be. */
static int fill_page(const struct fill *fill, struct folio *folio)
{
	unsigned int order = folio_order(folio);
	int err;

	if (bmm_known_test(folio, order))
		return -EEXIST;
	err = bmm_known_prepare(folio) ?: fill_zero(fill, folio);
	if (!err && !folio_test_hwpoison(folio) && bmm_known_set(folio, order)) {
		bmm_path_count(&bmm_prezero_path, BMM_PREZERO_ZEROED, 1);
		trace_prezero(folio_pfn(folio), order, "zeroed");
	}
	return err;
}

/*
 * Takes one page after the other until so many are zeroed, or so many in a row
 * were known: nothing here counts what is free and what is known, for a page
 * that is known may be in use. Returns how many were zeroed, and in @err why no
 * more.
 */
static unsigned long fill_pages(const struct fill *fill, unsigned long pages,
				int *err)
{
	unsigned long zeroed = 0, known_pages = 0;
	struct folio *folio = NULL;

	*err = 0;
	while (!*err && zeroed < pages) {
		folio = fill_swap(fill, folio);
		if (!folio) {
			*err = -EAGAIN;
			break;
		}
		*err = fill_page(fill, folio);
		zeroed += !*err;
		known_pages = *err == -EEXIST ? known_pages + 1 : 0;
		cond_resched();
		if (known_pages && known_pages < SKIPPED)
			*err = signal_pending(current) ? -EINTR : 0;
	}
	/* the next call begins with the next page, too */
	if (folio)
		fill_return_page(folio, *err == -EEXIST);
	return zeroed;
}

/**
 * bmm_filler_run() - zero free pages of a pool
 * @kib:   their size
 * @nid:   their node
 * @pages: at most so many
 * @floor: pages of the node that stay free at every moment, beyond as many as
 *         are reserved on all nodes; but for the first page since the module
 *         was loaded, which is returned at once
 *
 * Return: 0 after @pages or a part of them; if there was none, -EEXIST: the
 * next %SKIPPED pages are known to be zero, and the next call tries others;
 * -EAGAIN: none can be had (fill_take()); -EINTR; -ENODEV: the path is off;
 * -ENOMEM; -EINVAL: no such pool or node; -ENODATA: frees do not reach the hook.
 */
int bmm_filler_run(unsigned long kib, int nid, unsigned long pages,
		   unsigned long floor)
{
	struct fill fill = { .nid = nid, .floor = floor }, unlimited;
	unsigned long zeroed;
	int err;

	if (!bmm_known_opened())
		return -ENODEV;
	if (nid < 0 || nid >= nr_node_ids || !node_online(nid) ||
	    kib > ULONG_MAX >> 10)
		return -EINVAL;
	fill.h = static_call(bmm_find_pool)(kib << 10);
	if (!fill.h)
		return -EINVAL;
	unlimited = fill;
	unlimited.floor = 0;
	err = fill_probe_hook(&unlimited);
	if (err)
		return err;
	zeroed = fill_pages(&fill, pages, &err);
	return zeroed ? 0 : err;
}
