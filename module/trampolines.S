/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries of all hooks: which argument of the hooked function is compared
 * with the threshold. Arguments count from 0.
 */
#if defined(CONFIG_X86_64)
#include "x86/trampoline.S"
#elif defined(CONFIG_ARM64)
#include "arm64/trampoline.S"
#endif

	.text

/* memmap_init_zone_device(zone, start_pfn, nr_pages, pgmap) */
BMM_TRAMPOLINE memmap, BMM_SIZE, ARG2

/*
 * folio_zero_user(folio, addr_hint): no size to filter by, so the address,
 * which is always below the threshold that lets everything pass.
 */
BMM_TRAMPOLINE clear, BMM_SIZE, ARG1

/*
 * enqueue_hugetlb_folio(h, folio), remove_hugetlb_folio(h, folio,
 * adjust_surplus): all of them, as for hotplug below.
 */
BMM_TRAMPOLINE prezero, BMM_SIZE, ARG1
BMM_TRAMPOLINE prezero_remove, BMM_SIZE, ARG1

/* copy_user_large_folio(dst, src, addr_hint, vma): likewise */
BMM_TRAMPOLINE copy, BMM_SIZE, ARG2

/* clear_highpages_kasan_tagged(page, numpages) */
BMM_TRAMPOLINE alloc, BMM_SIZE_INT, ARG1_INT

/* __add_pages(nid, pfn, nr_pages, params) */
BMM_TRAMPOLINE alloc_add, BMM_SIZE, ARG2

/* vmap_small_pages_range_noflush(addr, end, prot, pages) */
BMM_TRAMPOLINE vmap_pages, BMM_SPAN, ARG0, ARG1

/*
 * vmap_range_noflush(addr, end, phys_addr, prot, max_page_shift): the kernel
 * itself maps whole PMD blocks in large steps.
 */
BMM_TRAMPOLINE vmap_range, BMM_SPAN_PARTLY, ARG0, ARG1, ARG2

/* get_vm_area_caller(size, flags, caller) */
BMM_TRAMPOLINE vmap_area, BMM_SIZE, ARG0

/*
 * set_zone_contiguous(zone), move_pfn_range_to_zone(zone, start_pfn, nr_pages,
 * ...), remove_pfn_range_from_zone(zone, start_pfn, nr_pages): rare, so none is
 * too small to be served; as for clear, an address stands in for the size.
 */
BMM_TRAMPOLINE hotplug, BMM_SIZE, ARG0
BMM_TRAMPOLINE hotplug_grow, BMM_SIZE, ARG0
BMM_TRAMPOLINE hotplug_shrink, BMM_SIZE, ARG0

#ifdef CONFIG_ARM64
/* __vmap_pages_range_noflush(addr, end, prot, pages, page_shift) */
BMM_TRAMPOLINE vmap_huge, BMM_SPAN_GROUPS, ARG0, ARG1, ARG4_INT
#endif
