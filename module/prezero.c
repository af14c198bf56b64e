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
 * comes from the page allocator without passing the former. So all their calls
 * must be calls: callers.c sees to it that each of their callers has one.
 *
 * prezero_fill.c has the filler, prezero_bitmap.c the bits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hugetlb.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/static_call.h>
#include <linux/string.h>

#include "control.h"
#include "faults.h"
#include "prezero.h"
#include "prezero_bitmap.h"
#include "prototype.h"
#include "trace.h"
#include "clear_common.h"

static void prezero_forget(struct folio *folio, unsigned int order)
{
	if (!bmm_fault("stale") && bmm_known_clear(folio, order))
		bmm_path_count(&bmm_prezero_path, BMM_PREZERO_FORGOTTEN, 1);
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

/*
 * Known pages come first on the free list, the others last, so that known ones
 * are used first. The filler can take only the first: with each known page that
 * it returns to take another, the last one moves to the front if it is unknown,
 * and it takes that before another filler returns one. If the last is known,
 * unknown ones can be in between where the kernel passed over them for a while
 * (broken or isolated), or where it could not take the one that had come to the
 * front: what is returned then goes to the end, so that all come to the front
 * in turn.
 *
 * Apart, so that a free that does not come here saves no registers for it.
 */
static noinline void prezero_page_returned(struct hstate *h,
					   struct folio *folio, bool filler)
{
	struct list_head *list = &h->hugepage_freelists[folio_nid(folio)];
	struct folio *last = list_last_entry(list, struct folio, lru);
	unsigned int order = huge_page_order(h);
	bool next = false;

	if (filler)
		next = bmm_filler_page_returned();
	else
		prezero_forget(folio, order);
	if (!filler || !bmm_known_test(folio, order))
		list_move_tail(&folio->lru, list);
	else if (!next)
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
	bool filler = !bmm_fault("inlined") && bmm_filler_is_returning(folio);

	static_call(bmm_prezero_original)(h, folio);
	if (unlikely(filler ||
		     bmm_known_any(huge_page_order(h), folio_nid(folio))))
		prezero_page_returned(h, folio, filler);
}

/* Entered in place of remove_hugetlb_folio(). */
void bmm_prezero_remove_handler(struct hstate *h, struct folio *folio,
				bool adjust_surplus)
{
	bmm_filler_is_returning(
		folio); /* whoever returns it next is not our filler */
	if (bmm_known_any(huge_page_order(h), folio_nid(folio)))
		prezero_forget(folio, huge_page_order(h));
	static_call(bmm_prezero_remove_original)(h, folio, adjust_surplus);
}

/* Called by path.c. */
static void prezero_on_switch(bool on)
{
	if (on)
		bmm_known_open();
	else
		bmm_path_count(&bmm_prezero_path, BMM_PREZERO_FORGOTTEN,
			       bmm_known_close());
}

static ssize_t known_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return bmm_known_show(buf);
}

static struct kobj_attribute known_file = __ATTR_RO(known);

/* "KIB NODE PAGES FLOOR", of which sscanf() would cut what does not fit. */
static int zero_parse(const char *buf, unsigned long *kib, int *nid,
		      unsigned long *pages, unsigned long *floor)
{
	int nr, err;
	char **words = argv_split(GFP_KERNEL, buf, &nr);

	if (!words)
		return -ENOMEM;
	err = nr == 4 ? 0 : -EINVAL;
	err = err ?: kstrtoul(words[0], 10, kib);
	err = err ?: kstrtoint(words[1], 10, nid);
	err = err ?: kstrtoul(words[2], 10, pages);
	err = err ?: kstrtoul(words[3], 10, floor);
	argv_free(words);
	if (err)
		pr_err("prezero: zero: write the size of a page in KiB, a node, how many pages, and how many stay free\n");
	return err;
}

static ssize_t zero_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	unsigned long kib, pages, floor;
	int nid, err = zero_parse(buf, &kib, &nid, &pages, &floor);

	if (err)
		return err;
	bmm_path_enter(&bmm_prezero_path);
	err = bmm_filler_run(kib, nid, pages, floor);
	bmm_path_leave(&bmm_prezero_path);
	return err ?: len;
}

static struct kobj_attribute zero_file = __ATTR(zero, 0200, NULL, zero_store);

struct bmm_path bmm_prezero_path = {
	BMM_PATH_NAMED(prezero),
	.needs_hooks_of = &bmm_clear_path,
	.needs_all_hooks = true,
	.on_switch = prezero_on_switch,
	.stop = bmm_known_stop,
	.hooks = {
		{ BMM_HOOK(prezero), .probe = bmm_filler_probe_hook },
		{ BMM_HOOK(prezero_remove) },
	},
	.files = { &known_file.attr, &zero_file.attr },
	.names[BMM_ZERO_STREAMED] = "streamed",
	.names[BMM_PREZERO_ZEROED] = "zeroed",
	.names[BMM_PREZERO_FORGOTTEN] = "forgotten",
};
