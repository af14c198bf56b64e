// SPDX-License-Identifier: GPL-2.0-only
/*
 * alloc: what the page allocator itself clears, in one extent.
 *
 * With init_on_alloc=1 kernels from 6.13 on clear an anonymous huge page where
 * it is allocated and skip folio_zero_user(), so that the clear path does not
 * see it. Some kernels (7.x) have a function of its own for that,
 * clear_highpages_kasan_tagged(page, numpages); where it is inlined, as a whole
 * (6.12) or into the one caller that counts (7.3 on arm64), this path does not
 * attach and says so.
 *
 * The allocator may be called in any context but an NMI. So there is no chance
 * to reschedule in here, as there is none in the original; and whose memory it
 * is, and where it is going to be touched, nobody says: a task that is inside a
 * system call that prepares memory is taken to prepare this.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/static_call.h>

#include "alloc.h"
#include "populate.h"
#include "symbols.h"
#include "zero.h"

#define SYMBOL "clear_highpages_kasan_tagged"

enum reason {
	REASON_OFF, /* switched off since the trampoline looked */
};

typedef void clear_pages_fn(struct page *page, int numpages);
DEFINE_STATIC_CALL_NULL(bmm_alloc_original, *(clear_pages_fn *)NULL);

unsigned long bmm_alloc_threshold = BMM_HOOK_PASS;

/* Who tries the hook out, and whether it came by here. */
static struct task_struct *trier;
static bool tried;

static void alloc_zero(struct page *page, int numpages, int mode)
{
	size_t bytes = (size_t)numpages << PAGE_SHIFT;
	u64 begun = ktime_get_mono_fast_ns();
	enum bmm_op op = bmm_zero_op(bytes, mode, in_task() && bmm_populating());

	bmm_zero(op, page_address(page), bytes);
	bmm_path_served(&bmm_alloc, bytes, ktime_get_mono_fast_ns() - begun);
}

/* Entered from the trampoline for requests of a huge page and more. */
void bmm_alloc_handler(struct page *page, int numpages)
{
	int mode = READ_ONCE(bmm_alloc.mode);

	bmm_path_enter(&bmm_alloc);
	if (unlikely(READ_ONCE(trier) == current)) {
		tried = true;
		static_call(bmm_alloc_original)(page, numpages);
	} else if (mode == BMM_OFF) {
		bmm_path_fallback(&bmm_alloc, REASON_OFF);
		static_call(bmm_alloc_original)(page, numpages);
	} else {
		alloc_zero(page, numpages, mode);
	}
	bmm_path_leave(&bmm_alloc);
}

static void alloc_set_original(unsigned long address)
{
	static_call_update(bmm_alloc_original, (void *)address);
}

/* What else the original does, it does for these. */
static int alloc_prepare(const char **symbol)
{
	return IS_ENABLED(CONFIG_HIGHMEM) || IS_ENABLED(CONFIG_KMSAN) ||
			       IS_ENABLED(CONFIG_KASAN) ?
		       -EOPNOTSUPP :
		       0;
}

/* Has the allocator clear a huge page, whatever the path is switched to. */
static int alloc_probe(void)
{
	unsigned long threshold = bmm_alloc_threshold;
	struct page *page;

	tried = false;
	WRITE_ONCE(trier, current);
	WRITE_ONCE(bmm_alloc_threshold, HPAGE_PMD_NR);
	page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP | __GFP_NOWARN,
			   HPAGE_PMD_ORDER);
	WRITE_ONCE(bmm_alloc_threshold, threshold);
	WRITE_ONCE(trier, NULL);
	if (!page)
		return -ENOMEM;
	__free_pages(page, HPAGE_PMD_ORDER);
	return tried ? 0 : -ENODATA;
}

struct bmm_path bmm_alloc = {
	.name = "alloc",
	.modes = bmm_zero_modes,
	.prepare = alloc_prepare,
	.hooks = { {
		.symbol = SYMBOL,
		.trampoline = bmm_alloc_trampoline,
		.threshold = &bmm_alloc_threshold,
		.set_original = alloc_set_original,
		.try = alloc_probe,
		.on_from = HPAGE_PMD_NR,
		.off_from = BMM_HOOK_PASS,
	} },
	.reasons = {
		[REASON_OFF] = "off",
	},
};
