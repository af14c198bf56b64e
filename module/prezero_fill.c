// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroes free hugetlb pages.
 *
 * The filler is a task inside a write to sysfs; it ends with its portion, by a
 * signal, or when the path goes off. It takes one page after another off the
 * free list, in the way that migration gets a target, zeroes it and drops the
 * only reference. So the page is in no file and in no page table: nobody can
 * map, pin or migrate it, and a filler that dies has no more than one to drop.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

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
#include "prezero_known.h"
#include "prototype.h"
#include "trace.h"
#include "zero.h"

#define UNIT	SZ_256K /* bytes between two chances to reschedule, or to end */
#define SKIPPED 8	/* that the kernel passes over: poisoned, isolated */
#define TRIES	3	/* others may hold a reference for a moment */

DEFINE_PER_CPU(const struct folio *, bmm_dropped);

/* So that two fillers do not both take what only one may. */
static DEFINE_MUTEX(fill_lock);

/* Frees of the kernel reach the hook: seen since the module was loaded. */
static bool proven;

/* Drops the only reference, and returns whether that reached the hook. */
static bool fill_drop(struct folio *folio)
{
	guard(preempt)();
	this_cpu_write(bmm_dropped, folio);
	folio_put(folio);
	return !this_cpu_xchg(bmm_dropped, NULL);
}

/*
 * Free pages of a node beyond those that are reserved. On which node somebody
 * needs them nobody knows; with a policy that binds it may be this one for all,
 * and a page that is missing there is a SIGBUS.
 */
static unsigned long fill_available(const struct hstate *h, int nid)
{
	unsigned long free = READ_ONCE(h->free_huge_pages_node[nid]);
	unsigned long reserved = READ_ONCE(h->resv_huge_pages);

	return free > reserved ? free - reserved : 0;
}

/*
 * Takes the first page of a node's free list, or NULL. Where surplus pages are
 * in use, the next page that is freed leaves the pool (free_huge_folio()), and
 * it is not to be one of ours. What is no longer free is not worth allocating:
 * no reclaim. A page may be in any zone of the node.
 */
static struct folio *fill_take(struct hstate *h, int nid, unsigned long floor)
{
	gfp_t gfp = (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE | __GFP_NOWARN) &
		    ~__GFP_RECLAIM;
	nodemask_t only = nodemask_of_node(nid);
	struct folio *folio;

	guard(mutex)(&fill_lock);
	if (READ_ONCE(h->surplus_huge_pages_node[nid]) ||
	    fill_available(h, nid) <= floor)
		return NULL;
	folio = static_call(bmm_take_huge)(h, nid, &only, gfp, false);
	if (folio && folio_test_hugetlb_temporary(folio)) {
		folio_put(folio); /* none was to be had; it leaves with this */
		return NULL;
	}
	return folio;
}

/* Returns 0, or the reason to end. */
static int fill_zero(struct folio *folio)
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
	}
	return 0;
}

/* Takes a page and returns it; 0, or -EAGAIN if there is none, or -ENODATA. */
static int fill_prove(struct hstate *h, int nid)
{
	struct folio *folio;
	int try;

	for (try = 0; try < TRIES && !READ_ONCE(proven); try++) {
		folio = fill_take(h, nid, 0);
		if (!folio)
			return -EAGAIN;
		if (fill_drop(folio))
			WRITE_ONCE(proven, true);
	}
	return READ_ONCE(proven) ? 0 : -ENODATA;
}

/**
 * bmm_prezero_prove() - check that frees reach the hook, if any pool has a page
 *
 * The first filler does it if none has. Return: 0 or -ENODATA.
 */
int bmm_prezero_prove(void)
{
	unsigned int order;
	struct hstate *h;
	int nid;

	for (order = 1; order <= PUD_SHIFT - PAGE_SHIFT; order++) {
		h = static_call(bmm_find_pool)(PAGE_SIZE << order);
		if (!h)
			continue;
		for_each_online_node(nid)
		{
			if (fill_prove(h, nid) != -EAGAIN)
				return READ_ONCE(proven) ? 0 : -ENODATA;
		}
	}
	return 0;
}

/* One page; 0 if it is zero now, -EEXIST if it was known to be. */
static int fill_one(struct hstate *h, int nid, unsigned long floor)
{
	struct folio *folio = fill_take(h, nid, floor);
	unsigned int order;
	int err = -EEXIST;

	if (!folio)
		return -EAGAIN;
	order = folio_order(folio);
	if (!bmm_known_test(folio, order))
		err = bmm_known_prepare(folio) ?: fill_zero(folio);
	if (!err && !folio_test_hwpoison(folio) && bmm_known_set(folio, order)) {
		bmm_path_count(&bmm_prezero_path, BMM_PREZERO_ZEROED, 1);
		trace_prezero(folio_pfn(folio), order, "zeroed");
	}
	fill_drop(folio);
	return err;
}

/*
 * The first page is known if all are, or until it comes back and the hook puts
 * another one first. While fewer are known than free, all are tried once.
 */
static int fill_next(struct hstate *h, int nid, unsigned long floor)
{
	unsigned long free = READ_ONCE(h->free_huge_pages_node[nid]), tries;
	unsigned long known = atomic_long_read(
		bmm_known_count(huge_page_order(h), nid));
	int err = -EEXIST;

	for (tries = SKIPPED + (known < free ? free : 0);
	     tries && err == -EEXIST; tries--) {
		err = fill_one(h, nid, floor);
		cond_resched();
		if (err == -EEXIST && signal_pending(current))
			err = -EINTR;
	}
	return err;
}

/**
 * bmm_prezero_fill() - zero free pages of a pool
 * @kib:   their size
 * @nid:   their node
 * @pages: at most so many
 * @floor: pages of the node that stay free at every moment, beyond as many as
 *         are reserved on all nodes
 *
 * Return: 0 after @pages or a part of them; if there was none, -EEXIST: all
 * that are free are known to be zero; -EAGAIN: others need them; -EINTR;
 * -ENODEV: the path is off; -ENOMEM; -EINVAL: no such pool or node; -ENODATA:
 * frees do not reach the hook.
 */
int bmm_prezero_fill(unsigned long kib, int nid, unsigned long pages,
		     unsigned long floor)
{
	unsigned long done = 0;
	struct hstate *h;
	int err;

	if (!bmm_known_opened())
		return -ENODEV;
	if (nid < 0 || nid >= nr_node_ids || !node_online(nid) ||
	    kib > ULONG_MAX >> 10)
		return -EINVAL;
	h = static_call(bmm_find_pool)(kib << 10);
	if (!h)
		return -EINVAL;
	err = fill_prove(h, nid);
	while (!err && done < pages) {
		err = fill_next(h, nid, floor);
		done += !err;
	}
	return done ? 0 : err;
}
