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
#define SKIPPED 8	/* that the kernel passes over: poisoned, isolated */
#define TRIES	3	/* others may hold a reference for a moment */

/* The page that this CPU's task is dropping, with preemption disabled. */
static DEFINE_PER_CPU(const struct folio *, dropped);

/* So that two fillers do not both take what only one may. */
static DEFINE_MUTEX(fill_lock);

/* Frees of the kernel reach the hook: seen since the module was loaded. */
static bool proven;

/*
 * Whether a filler returns this page, which is on its way to the free list.
 * Answers once. Context: interrupts disabled.
 */
static bool fill_drops(const struct folio *folio)
{
	if (likely(__this_cpu_read(dropped) != folio))
		return false;
	__this_cpu_write(dropped, NULL);
	return true;
}

/*
 * Drops our reference, and returns whether that reached the hook. If it is not
 * the last one, the page is not ours to announce: whoever has that returns it,
 * others may use it, and return it here before we look again.
 */
static bool fill_drop(struct folio *folio)
{
	guard(preempt)();
	if (!folio_put_testzero(folio))
		return false;
	this_cpu_write(dropped, folio);
	__folio_put(folio);
	return !this_cpu_xchg(dropped, NULL);
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

/*
 * Checks that frees reach the hook, as the compiler may have inlined its
 * function, if any pool has a page; the first filler does it if none has.
 * Returns 0 or -ENODATA.
 */
static int fill_prove_any(void)
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
		bmm_path_count(&bmm_prezero_path, ZEROED, 1);
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
 * prezero_fill() - zero free pages of a pool
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
static int prezero_fill(unsigned long kib, int nid, unsigned long pages,
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

/*
 * Known pages come first on the free list, the others last, so that known ones
 * are used first. The filler can take only the first: with each known page that
 * it returns, the last one moves to the front if it is unknown. If it is not,
 * unknown ones may be in between, where several fillers have left them: what is
 * returned then goes to the end, so that all come to the front in turn.
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
	if (filler && bmm_known_test(folio, order) &&
	    !bmm_known_test(last, order))
		list_move(&last->lru, list);
	else
		list_move_tail(&folio->lru, list);
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
 * all calls of this function must be calls of it: in free_huge_folio(), and
 * where a pool shrinks, where a free page is dissolved, where one is replaced,
 * and where one is demoted (mm/hugetlb.c, 6.12 and 7.3).
 */
#define REMOVE	"remove_hugetlb_folio"
#define CALLERS 5

static int prezero_prepare(void)
{
	long callers = prezero_callers(REMOVE) - bmm_fault("cloned");

	/* the hook says so if there is no such function */
	return callers >= 0 && callers < CALLERS ? -ENODATA : 0;
}

/* Called by path.c. */
static void prezero_live(bool on)
{
	if (on)
		bmm_known_open();
	else
		bmm_path_count(&bmm_prezero_path, FORGOTTEN, bmm_known_close());
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
	.hooks = {
		{ BMM_HOOK(prezero), .try = fill_prove_any },
		{ BMM_HOOK(prezero_remove) },
	},
	.files = { &known_file.attr, &zero_file.attr },
	.names[BMM_ZERO_STREAMED] = "streamed",
	.names[ZEROED] = "zeroed",
	.names[FORGOTTEN] = "forgotten",
};
