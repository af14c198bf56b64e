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

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "prototype.h"
#include "trace.h"
#include "clear_common.h"

/* Pages of a huge page, whether the kernel supports them or not. */
#define ON_FROM (1 << (PMD_SHIFT - PAGE_SHIFT))

enum {
	/* switched off after the trampoline's check */
	FALLBACK_OFF = BMM_ZERO_STREAMED + 1,
};

/* The task that probes the hook, and whether it reached the handler. */
static struct task_struct *alloc_prober;
static bool alloc_reached;

/*
 * The task that adds memory, and the bytes of its struct pages. Memory is added
 * under mem_hotplug_lock, by one task at a time; should there ever be two, the
 * second's struct pages are cleared like any other memory.
 */
static struct task_struct *alloc_adder;
static size_t alloc_memmap_bytes;

static enum bmm_op alloc_op(size_t bytes, int mode)
{
	if (!in_task())
		return bmm_zero_op(bytes, mode, false);
	if (READ_ONCE(alloc_adder) == current)
		return bmm_zero_op(alloc_memmap_bytes, mode, false);
	return bmm_zero_op(bytes, mode, bmm_is_populating());
}

static void alloc_zero(struct page *page, int numpages, int mode)
{
	size_t bytes = (size_t)numpages << PAGE_SHIFT;
	enum bmm_op op = alloc_op(bytes, mode);
	u64 start = trace_alloc_enabled() ? ktime_get_mono_fast_ns() : 0;

	bmm_zero(&bmm_alloc_path, op, page_address(page), bytes);
	bmm_path_served(&bmm_alloc_path, bytes, 0);
	if (start)
		trace_alloc(page_to_pfn(page), numpages,
			    ktime_get_mono_fast_ns() - start,
			    op == BMM_CLEAR_STREAMING);
}

/*
 * Entered from the trampoline for requests of a huge page and more; while the
 * hook is being probed, for all requests of all tasks.
 */
void bmm_alloc_handler(struct page *page, int numpages)
{
	int mode = READ_ONCE(bmm_alloc_path.mode);

	bmm_path_enter(&bmm_alloc_path);
	if (likely(numpages >= ON_FROM && mode != BMM_OFF)) {
		alloc_zero(page, numpages, mode);
	} else {
		if (numpages >= ON_FROM)
			bmm_path_count(&bmm_alloc_path, FALLBACK_OFF, 1);
		else if (READ_ONCE(alloc_prober) == current && in_task())
			WRITE_ONCE(alloc_reached, true);
		static_call(bmm_alloc_original)(page, numpages);
	}
	bmm_path_leave(&bmm_alloc_path);
}

/* Entered in place of __add_pages(): the memory added will be used. */
int bmm_alloc_add_handler(int nid, unsigned long pfn, unsigned long nr_pages,
			  struct mhp_params *params)
{
	bool began;
	int err;

	bmm_path_enter(&bmm_alloc_path);
	began = !cmpxchg(&alloc_adder, NULL, current);
	if (began)
		alloc_memmap_bytes = nr_pages * sizeof(struct page);
	err = static_call(bmm_alloc_add_original)(nid, pfn, nr_pages, params);
	if (began)
		smp_store_release(&alloc_adder, NULL);
	bmm_path_leave(&bmm_alloc_path);
	return err;
}

/*
 * Makes the allocator clear a page, whatever the path's mode: when allocating
 * or, with init_on_free=1, when freeing it. One page is enough, and available
 * on a host without a free huge page.
 */
static int alloc_probe(void)
{
	struct page *page;

	WRITE_ONCE(alloc_reached, false);
	WRITE_ONCE(alloc_prober, current);
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (page)
		__free_page(page);
	WRITE_ONCE(alloc_prober, NULL);
	if (!page)
		return -ENOMEM;
	return READ_ONCE(alloc_reached) ? 0 : -ENODATA;
}

struct bmm_path bmm_alloc_path = {
	BMM_PATH_NAMED(alloc),
	.hooks = {
		{
			BMM_HOOK(alloc),
			.probe = alloc_probe,
			.on_from = ON_FROM,
		},
		{ BMM_HOOK(alloc_add) },
	},
	.names[BMM_ZERO_STREAMED] = "streamed",
	.names[FALLBACK_OFF] = "fallback_off",
};
