// SPDX-License-Identifier: GPL-2.0-only
/*
 * prezero: a hugetlb page that is known to be zero is not cleared again.
 *
 * A bit is set for a page that was zeroed while nobody else could write to it,
 * by the filler, which then returns it to the free list. It is cleared when
 * somebody else returns the page, when the page leaves the pool, and when it is
 * used to skip a clearing. So a set bit means: since the page was zeroed, it
 * was free, or in the hands of one that took it from there and has not asked
 * for it to be cleared. docs/prezero.md has the proof.
 *
 * enqueue_hugetlb_folio() and remove_hugetlb_folio() are the only ways back to
 * the free list and out of the pool. The latter matters, as a surplus page
 * comes from the page allocator without passing the former.
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
#include <linux/kallsyms.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/static_call.h>

#include "control.h"
#include "faults.h"
#include "prezero_known.h"
#include "prototype.h"
#include "symbols.h"
#include "trace.h"
#include "zero.h"
#ifdef CONFIG_ARM64
#include "arm64/site.h"
#else
#include "x86/site.h"
#endif

enum {
	ZEROED = BMM_ZERO_STREAMED + 1, /* pages that became known */
	FORGOTTEN,			/* pages that ceased to be, unused */
};

static void prezero_forget(struct folio *folio, unsigned int order)
{
	if (!bmm_fault("stale") && bmm_known_clear(folio, order))
		bmm_path_count(&bmm_prezero_path, FORGOTTEN, 1);
}

/**
 * bmm_prezero_serves() - whether a page need not be cleared
 * @folio: any folio that folio_zero_user() is to clear; its caller's alone
 */
bool bmm_prezero_serves(struct folio *folio)
{
	unsigned int order = folio_order(folio);

	if (!bmm_known_opened() || !folio_test_hugetlb(folio))
		return false;
	if (folio_test_hwpoison(folio)) {
		prezero_forget(folio, order);
		return false;
	}
	if (!bmm_known_clear(folio, order))
		return false;
	bmm_path_served(&bmm_prezero_path, folio_size(folio), 0);
	trace_prezero(folio_pfn(folio), order, "served");
	return true;
}

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
struct drop {
	const struct folio *folio;
	bool next;
};

static DEFINE_PER_CPU(struct drop, dropped);

/*
 * So that two fillers do not both take what only one may, and each takes the
 * page that its return has brought to the front.
 */
static DEFINE_MUTEX(fill_lock);

/* Frees of the kernel reach the hook: seen since the module was loaded. */
static bool proven;

/*
 * Whether a filler returns this page, which is on its way to the free list.
 * Answers once. Context: interrupts disabled.
 */
static bool fill_drops(const struct folio *folio)
{
	if (likely(__this_cpu_read(dropped.folio) != folio))
		return false;
	__this_cpu_write(dropped.folio, NULL);
	return true;
}

/*
 * Drops our reference, and returns whether that reached the hook. If it is not
 * the last one, the page is not ours to announce: whoever has that returns it,
 * others may use it, and return it here before we look again.
 */
static bool fill_drop(struct folio *folio, bool next)
{
	guard(preempt)();
	if (!folio_put_testzero(folio))
		return false;
	this_cpu_write(dropped.next, next);
	this_cpu_write(dropped.folio, folio);
	__folio_put(folio);
	return !this_cpu_xchg(dropped.folio, NULL);
}

/*
 * Free pages of a node beyond those that are reserved. On which node somebody
 * needs them nobody knows; with a policy that binds it may be this one for all,
 * and a page that is missing there is a SIGBUS.
 */
static unsigned long fill_available(const struct fill *fill)
{
	unsigned long free = READ_ONCE(fill->h->free_huge_pages_node[fill->nid]);
	unsigned long reserved = READ_ONCE(fill->h->resv_huge_pages);

	return free > reserved ? free - reserved : 0;
}

/*
 * Takes the first page of a node's free list, or NULL. Where surplus pages are
 * in use, the next page that is freed leaves the pool (free_huge_folio()), and
 * it is not to be one of ours.
 *
 * Where the kernel cannot take any, as all are broken, isolated, or gone since
 * we looked, it allocates one, which leaves with its last reference. That must
 * be a hugetlb page, too: __GFP_COMP, which alloc_buddy_hugetlb_folio() adds by
 * itself (6.12) and alloc_buddy_frozen_folio() does not (7.3, mm/hugetlb.c). So
 * the mask is that of the kernel's own callers, htlb_alloc_mask(), which uses a
 * variable that is not exported (7.3): a page may be in any zone, and gigantic
 * ones are never allocated here (alloc_migrate_hugetlb_folio()). It is bound to
 * the node, and without reclaim, for nobody needs what is allocated.
 */
#define FILL_GFP                                                               \
	((GFP_HIGHUSER_MOVABLE | __GFP_COMP | __GFP_NOWARN | __GFP_THISNODE) & \
	 ~__GFP_RECLAIM)

static struct folio *fill_take(const struct fill *fill)
{
	nodemask_t only = nodemask_of_node(fill->nid);
	struct folio *folio;

	if (READ_ONCE(fill->h->surplus_huge_pages_node[fill->nid]) ||
	    fill_available(fill) <= fill->floor)
		return NULL;
	folio = static_call(bmm_take_huge)(fill->h, fill->nid, &only, FILL_GFP,
					   false);
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
		fill_drop(folio, true);
	return fill_take(fill);
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
		if (fill_available(fill) < fill->floor)
			return -EAGAIN;
	}
	return 0;
}

/* Takes a page and returns it; 0, or -EAGAIN if there is none, or -ENODATA. */
static int fill_prove(const struct fill *fill)
{
	struct folio *folio;
	int try;

	for (try = 0; try < TRIES && !READ_ONCE(proven); try++) {
		folio = fill_swap(fill, NULL);
		if (!folio)
			return -EAGAIN;
		if (fill_drop(folio, false))
			WRITE_ONCE(proven, true);
	}
	return READ_ONCE(proven) ? 0 : -ENODATA;
}

/*
 * Checks that frees reach the hook, as the compiler may have inlined its
 * function, if any pool has a page; the first filler does it if none has.
 * Returns 0 or -ENODATA.
 */
static int fill_prove_any(void)
{
	unsigned int order;
	struct fill fill = {};

	for (order = 1; order <= PUD_SHIFT - PAGE_SHIFT; order++) {
		fill.h = static_call(bmm_find_pool)(PAGE_SIZE << order);
		if (!fill.h)
			continue;
		for_each_online_node(fill.nid)
		{
			if (fill_prove(&fill) != -EAGAIN)
				return READ_ONCE(proven) ? 0 : -ENODATA;
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
		bmm_path_count(&bmm_prezero_path, ZEROED, 1);
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
	unsigned long done = 0, known = 0;
	struct folio *folio = NULL;

	*err = 0;
	while (!*err && done < pages) {
		folio = fill_swap(fill, folio);
		if (!folio) {
			*err = -EAGAIN;
			break;
		}
		*err = fill_page(fill, folio);
		done += !*err;
		known = *err == -EEXIST ? known + 1 : 0;
		cond_resched();
		if (known && known < SKIPPED)
			*err = signal_pending(current) ? -EINTR : 0;
	}
	/* the next call begins with the next page, too */
	if (folio)
		fill_drop(folio, *err == -EEXIST);
	return done;
}

/**
 * prezero_fill() - zero free pages of a pool
 * @kib:   their size
 * @nid:   their node
 * @pages: at most so many
 * @floor: pages of the node that stay free at every moment, beyond as many as
 *         are reserved on all nodes
 *
 * Return: 0 after @pages or a part of them; if there was none, -EEXIST: the
 * next %SKIPPED pages are known to be zero, and the next call tries others;
 * -EAGAIN: others need them; -EINTR; -ENODEV: the path is off; -ENOMEM;
 * -EINVAL: no such pool or node; -ENODATA: frees do not reach the hook.
 */
static int prezero_fill(unsigned long kib, int nid, unsigned long pages,
			unsigned long floor)
{
	struct fill fill = { .nid = nid, .floor = floor }, any;
	unsigned long done;
	int err;

	if (!bmm_known_opened())
		return -ENODEV;
	if (nid < 0 || nid >= nr_node_ids || !node_online(nid) ||
	    kib > ULONG_MAX >> 10)
		return -EINVAL;
	fill.h = static_call(bmm_find_pool)(kib << 10);
	if (!fill.h)
		return -EINVAL;
	any = fill;
	any.floor = 0;
	err = fill_prove(&any);
	if (err)
		return err;
	done = fill_pages(&fill, pages, &err);
	return done ? 0 : err;
}

/*
 * Known pages come first on the free list, the others last, so that known ones
 * are used first. The filler can take only the first: with each known page that
 * it returns to take another, the last one moves to the front if it is unknown,
 * and it takes that, as no other filler does so meanwhile. If the last is
 * known, unknown ones can be in between only where the kernel passed over them
 * for a while (broken or isolated), or refused one that had come to the front:
 * what is returned then goes to the end, so that all come to the front in turn.
 *
 * Apart, so that a free that does not come here saves no registers for it.
 */
static noinline void prezero_returned(struct hstate *h, struct folio *folio,
				      bool filler)
{
	struct list_head *list = &h->hugepage_freelists[folio_nid(folio)];
	struct folio *last = list_last_entry(list, struct folio, lru);
	unsigned int order = huge_page_order(h);

	if (!filler)
		prezero_forget(folio, order);
	if (!filler || !bmm_known_test(folio, order))
		list_move_tail(&folio->lru, list);
	else if (!__this_cpu_read(dropped.next))
		return;
	else if (bmm_known_test(last, order))
		list_move_tail(&folio->lru, list);
	else
		list_move(&last->lru, list);
}

/*
 * Entered in place of enqueue_hugetlb_folio(), as the next one under
 * hugetlb_lock with interrupts disabled: nobody has a reference to the page,
 * and neither can sleep, so they are not counted as being inside (path.h).
 */
void bmm_prezero_handler(struct hstate *h, struct folio *folio)
{
	bool filler = !bmm_fault("inlined") && fill_drops(folio);

	static_call(bmm_prezero_original)(h, folio);
	if (unlikely(filler ||
		     bmm_known_any(huge_page_order(h), folio_nid(folio))))
		prezero_returned(h, folio, filler);
}

/* Entered in place of remove_hugetlb_folio(). */
void bmm_prezero_remove_handler(struct hstate *h, struct folio *folio,
				bool adjust_surplus)
{
	fill_drops(folio); /* whoever returns it next is not our filler */
	if (bmm_known_any(huge_page_order(h), folio_nid(folio)))
		prezero_forget(folio, huge_page_order(h));
	static_call(bmm_prezero_remove_original)(h, folio, adjust_surplus);
}

/* The beginning of the function at @at; 0: none, or the cold part of one. */
static unsigned long function_at(unsigned long at)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned long offset;
	const char *plus;

	sprint_symbol(name, at); /* "name+0x10/0x80" */
	plus = strrchr(name, '+');
	if (!plus || sscanf(plus, "+%lx/", &offset) != 1 ||
	    strstr(name, ".cold"))
		return 0;
	return at - offset;
}

/*
 * How many functions call this one, or a negative errno of finding the symbol.
 * A compiler may inline a function into some of its callers, or have them call
 * a clone: a hook on it then misses them, and its symbol does not tell. The
 * kernel's text does, as a direct call or jump names its target.
 *
 * Calls that are patched in at run time are not seen, and a part that the
 * compiler split off a caller counts as one of its own, unless it is cold.
 * Takes some 10 ms. May sleep; callers serialise.
 */
static long prezero_callers(const char *symbol)
{
	unsigned long last = 0, found = 0, caller;
	long at = bmm_symbol_data("_stext"), end = bmm_symbol_data("_etext");
	long entry = bmm_symbol_entry(symbol);

	if (IS_ERR_VALUE(at) || IS_ERR_VALUE(end) || IS_ERR_VALUE(entry))
		return -ENOENT;
	for (; at + MCOUNT_INSN_SIZE <= end; at += BMM_CALL_STEP) {
		if (!(at % PAGE_SIZE))
			cond_resched();
		if (bmm_call_target(at) != entry)
			continue;
		caller = function_at(at);
		found += caller && caller != last;
		last = caller;
	}
	return found;
}

/*
 * A page that left the pool unseen would still be known when it comes back. So
 * all calls of this function must be calls of it, and no other number will do,
 * as a call that is inlined could hide behind a new caller: in
 * free_huge_folio(), and where a pool shrinks, where a free page is dissolved,
 * where one is replaced, and where one is demoted (mm/hugetlb.c, 6.12 and 7.3).
 */
#define REMOVE	"remove_hugetlb_folio"
#define CALLERS 5

static int prezero_prepare(void)
{
	long callers = prezero_callers(REMOVE) - bmm_fault("cloned");

	/* the hook says so if there is no such function */
	return callers >= 0 && callers != CALLERS ? -ENODATA : 0;
}

/* Called by path.c. What was left when the path was stopped is void by now. */
static void prezero_live(bool on)
{
	bmm_path_count(&bmm_prezero_path, FORGOTTEN, bmm_known_close());
	if (on)
		bmm_known_open();
}

static ssize_t known_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return bmm_known_show(buf);
}

static struct kobj_attribute known_file = __ATTR_RO(known);

/* "KIB NODE PAGES FLOOR": see prezero_fill(). */
static ssize_t zero_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	unsigned long kib, pages, floor;
	int nid, err, end = 0;

	if (sscanf(buf, "%lu %d %lu %lu %n", &kib, &nid, &pages, &floor,
		   &end) != 4 ||
	    buf[end]) {
		pr_err("prezero: zero: write the size of a page in KiB, a node, how many pages, and how many stay free\n");
		return -EINVAL;
	}
	bmm_path_enter(&bmm_prezero_path);
	err = prezero_fill(kib, nid, pages, floor);
	bmm_path_leave(&bmm_prezero_path);
	return err ?: len;
}

static struct kobj_attribute zero_file = __ATTR(zero, 0200, NULL, zero_store);

struct bmm_path bmm_prezero_path = {
	BMM_PATH_NAMED(prezero),
	.with = &bmm_clear_path,
	.whole = true,
	.prepare = prezero_prepare,
	.prepares = REMOVE,
	.live = prezero_live,
	.stop = bmm_known_stop,
	.hooks = {
		{ BMM_HOOK(prezero), .try = fill_prove_any },
		{ BMM_HOOK(prezero_remove) },
	},
	.files = { &known_file.attr, &zero_file.attr },
	.names[BMM_ZERO_STREAMED] = "streamed",
	.names[ZEROED] = "zeroed",
	.names[FORGOTTEN] = "forgotten",
};
