// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Physically contiguous runs, and the blocks that map them.
 *
 * The "optimize vmap" work on the Linux memory management list (2025-2026)
 * showed what mapping by runs is worth; there a run ends the search at the
 * first single page, and a block that does not fit is given up for pages.
 * Here the caller asks again behind each run, and a block that does not fit is
 * tried at each smaller order.
 */
#include "bmm.h"

/**
 * bmm_run_length_step() - length of the run that starts an array
 * @item: numbers, or pointers read as such: PFNs, or the addresses of struct
 *        pages where the memmap is one array
 * @n:    how many
 * @step: from one item of a run to the next, modulo the width of an item: 1
 *        for PFNs, the size of a struct page for addresses
 *
 * Return: how many items from the first on each follow from the one before; 0
 * only for no item.
 */
size_t bmm_run_length_step(const bmm_address *item, size_t n, unsigned long step)
{
	unsigned long want = n ? item[0] : 0;
	size_t i = 0;

	/* One branch for eight: in a long run it is always the same way. */
	for (; n - i >= 8; i += 8, want += 8 * step)
		if ((item[i] ^ want) | (item[i + 1] ^ (want + step)) |
		    (item[i + 2] ^ (want + 2 * step)) |
		    (item[i + 3] ^ (want + 3 * step)) |
		    (item[i + 4] ^ (want + 4 * step)) |
		    (item[i + 5] ^ (want + 5 * step)) |
		    (item[i + 6] ^ (want + 6 * step)) |
		    (item[i + 7] ^ (want + 7 * step)))
			break;
	for (; i < n && item[i] == want; i++)
		want += step;
	return i;
}

/**
 * bmm_run_length() - length of the physically contiguous run that starts an
 *                    array
 * @pfns: page frame numbers
 * @n:    how many
 *
 * Return: as bmm_run_length_step().
 */
size_t bmm_run_length(const bmm_address *pfns, size_t n)
{
	return bmm_run_length_step(pfns, n, 1);
}

/**
 * bmm_run_length_get() - as bmm_run_length(), for PFNs that are not an array
 * @get: returns PFN @i, for @i below @n; asked in ascending order, once each,
 *       and for one PFN behind the run if there is one
 * @ctx: handed to @get
 * @n:   how many PFNs there are
 *
 * Return: as bmm_run_length().
 */
size_t bmm_run_length_get(unsigned long (*get)(const void *ctx, size_t i),
			  const void *ctx, size_t n)
{
	unsigned long first = n ? get(ctx, 0) : 0;
	size_t i;

	for (i = 1; i < n; i++)
		if (get(ctx, i) != first + i)
			return i;
	return n;
}

/**
 * bmm_block_order() - the largest block that can start a mapping
 * @vpn:    virtual page number (address divided by the page size)
 * @pfn:    physical page number it is to map
 * @pages:  contiguous pages that are left to map from there; 0 gives order 0
 * @orders: bit o is set where the page tables have blocks of 1 << o pages (9
 *          and 18 for x86-64, 4 too for contiguous entries of 64 KiB); single
 *          pages need no bit
 *
 * A block needs both numbers aligned to its size. Where the largest does not
 * fit, the next smaller one is taken, down to the page.
 *
 * Return: an order that is set in @orders, or 0.
 */
unsigned int bmm_block_order(unsigned long vpn, unsigned long pfn,
			     unsigned long pages, unsigned long orders)
{
	const unsigned int top = 8 * sizeof(long) - 1;
	unsigned int limit;

	if (!pages)
		return 0;
	limit = top - (unsigned int)__builtin_clzl(pages);
	if ((vpn | pfn) & ((1UL << limit) - 1))
		limit = (unsigned int)__builtin_ctzl(vpn | pfn);
	orders &= ~0UL >> (top - limit);
	return orders ? top - (unsigned int)__builtin_clzl(orders) : 0;
}
