// SPDX-License-Identifier: GPL-2.0-only
/*
 * alloc: clears in one extent what the page allocator itself clears.
 *
 * With init_on_alloc=1, kernels from 6.13 on clear an anonymous huge page when
 * allocating it and skip folio_zero_user(), so the clear path does not see it.
 * Some kernels (7.x) have a separate function for that,
 * clear_highpages_kasan_tagged(page, numpages); where it is inlined, either
 * everywhere (6.12) or into the one caller that matters (7.3 on arm64), this
 * path does not attach and says so.
 *
 * The allocator may be called in any context, by BPF programs even in an NMI.
 * So there is no chance to reschedule in here, just as in the original. Nothing
 * tells whose memory it is and where it will be touched: a task inside a system
 * call that prepares memory is assumed to prepare this. Nor is it known whether
 * memory is being cleared on free (init_on_free=1): it is cleared the same way.
 *
 * One use is known in advance: for memory that is plugged in, __add_pages()
 * allocates struct pages section by section, and they are written only when all
 * are allocated. So it is hooked as well: their total size decides whether they
 * are left in the cache.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "alloc.h"
#include "populate.h"
#include "prototype.h"
#include "zero.h"

#define SYMBOL "clear_highpages_kasan_tagged"

/* Pages of a huge page, whether the kernel supports them or not. */
#define ON_FROM (1 << (PMD_SHIFT - PAGE_SHIFT))

enum reason {
	REASON_OFF, /* switched off after the trampoline's check */
};

BMM_FUNCTION(bmm_alloc, void, struct page *, int);
BMM_FUNCTION(bmm_add, int, int, unsigned long, unsigned long,
	     struct mhp_params *);
static_assert(__same_type(bmm_alloc_handler, bmm_alloc_fn));
static_assert(__same_type(bmm_alloc_add_handler, bmm_add_fn));
DEFINE_STATIC_CALL_NULL(bmm_alloc_original, *(bmm_alloc_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_alloc_add, *(bmm_add_fn *)NULL);

unsigned long bmm_alloc_threshold = BMM_HOOK_PASS;
unsigned long bmm_alloc_add_threshold = BMM_HOOK_PASS;

/* The task that probes the hook, and whether it reached the handler. */
static struct task_struct *trier;
static bool tried;

/*
 * The task that adds memory, and the bytes of its struct pages. Memory is added
 * under mem_hotplug_lock, by one task at a time; should there ever be two, the
 * second's struct pages are cleared like any other memory.
 */
static struct task_struct *adder;
static size_t memmap_bytes;

static enum bmm_op alloc_op(size_t bytes, int mode)
{
	if (!in_task())
		return bmm_zero_op(bytes, mode, false);
	if (READ_ONCE(adder) == current)
		return bmm_zero_op(memmap_bytes, mode, false);
	return bmm_zero_op(bytes, mode, bmm_populating());
}

static void alloc_zero(struct page *page, int numpages, int mode)
{
	static const struct bmm_unit_want whole = { .bytes = SIZE_MAX };
	size_t bytes = (size_t)numpages << PAGE_SHIFT;
	enum bmm_op op = alloc_op(bytes, mode);
	u64 ns;

	bmm_zero(&bmm_alloc, op, &whole, bytes, page_address(page), bytes, &ns);
	bmm_path_count(&bmm_alloc, BMM_HITS, 1);
	bmm_path_count(&bmm_alloc, BMM_BYTES, bytes);
}

/* Returns a reason to fall back to the original, or -1. */
static int alloc_serve(struct page *page, int numpages)
{
	int mode = READ_ONCE(bmm_alloc.mode);

	if (mode == BMM_OFF)
		return REASON_OFF;
	alloc_zero(page, numpages, mode);
	return -1;
}

/*
 * Entered from the trampoline for requests of a huge page and more; while the
 * hook is being probed, for all requests of all tasks.
 */
void bmm_alloc_handler(struct page *page, int numpages)
{
	int reason = -1;

	bmm_path_enter(&bmm_alloc);
	if (unlikely(numpages < ON_FROM)) {
		if (READ_ONCE(trier) == current && in_task())
			WRITE_ONCE(tried, true);
		static_call(bmm_alloc_original)(page, numpages);
	} else {
		reason = alloc_serve(page, numpages);
	}
	if (reason >= 0) {
		bmm_path_fallback(&bmm_alloc, reason);
		static_call(bmm_alloc_original)(page, numpages);
	}
	bmm_path_leave(&bmm_alloc);
}

/* Entered in place of __add_pages(): the memory added will be used. */
int bmm_alloc_add_handler(int nid, unsigned long pfn, unsigned long nr_pages,
			  struct mhp_params *params)
{
	bool began;
	int err;

	bmm_path_enter(&bmm_alloc);
	began = !cmpxchg(&adder, NULL, current);
	if (began)
		memmap_bytes = nr_pages * sizeof(struct page);
	err = static_call(bmm_alloc_add)(nid, pfn, nr_pages, params);
	if (began)
		smp_store_release(&adder, NULL);
	bmm_path_leave(&bmm_alloc);
	return err;
}

static void alloc_set_add(unsigned long address)
{
	static_call_update(bmm_alloc_add, (void *)address);
}

static void alloc_set_original(unsigned long address)
{
	static_call_update(bmm_alloc_original, (void *)address);
}

/* The original does more than clear with any of these. */
static int alloc_prepare(const char **symbol)
{
	*symbol = BMM_NAME_IF_SET(CONFIG_HIGHMEM)	?:
			  BMM_NAME_IF_SET(CONFIG_KMSAN) ?:
			  BMM_NAME_IF_SET(CONFIG_KASAN);
	return *symbol ? -EOPNOTSUPP : 0;
}

/*
 * Makes the allocator clear a page, whatever the path's mode: when allocating
 * or, with init_on_free=1, when freeing it. One page is enough, and available
 * on a host without a free huge page.
 */
static int alloc_probe(void)
{
	unsigned long threshold = bmm_alloc_threshold;
	struct page *page;

	WRITE_ONCE(tried, false);
	WRITE_ONCE(trier, current);
	WRITE_ONCE(bmm_alloc_threshold, 1);
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (page)
		__free_page(page);
	WRITE_ONCE(bmm_alloc_threshold, threshold);
	WRITE_ONCE(trier, NULL);
	if (!page)
		return -ENOMEM;
	return READ_ONCE(tried) ? 0 : -ENODATA;
}

struct bmm_path bmm_alloc = {
	.name = "alloc",
	.modes = bmm_zero_modes,
	.prepare = alloc_prepare,
	.hooks = {
		{
			.symbol = SYMBOL,
			.prototype = bmm_alloc_prototype,
			.trampoline = bmm_alloc_trampoline,
			.threshold = &bmm_alloc_threshold,
			.set_original = alloc_set_original,
			.try = alloc_probe,
			.on_from = ON_FROM,
		},
		{
			.symbol = "__add_pages",
			.prototype = bmm_add_prototype,
			.trampoline = bmm_alloc_add_trampoline,
			.threshold = &bmm_alloc_add_threshold,
			.set_original = alloc_set_add,
		},
	},
	.extras = { &bmm_zero_streamed_attr },
	.reasons = {
		[REASON_OFF] = "off",
	},
};
