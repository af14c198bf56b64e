/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries of all hooks: which argument of the function taken over is
 * compared with the path's threshold, or the distance of which two. Arguments
 * count from 0.
 */
#if defined(CONFIG_X86_64)
#include "x86/trampoline.S"
#elif defined(CONFIG_ARM64)
#include "arm64/trampoline.S"
#endif

	.text

/* memmap_init_zone_device(zone, start_pfn, nr_pages, pgmap) */
BMM_TRAMPOLINE memmap ARG2

/*
 * folio_zero_user(folio, addr_hint): no size to filter by, so the address, of
 * which none is as large as the threshold that lets everything pass.
 */
BMM_TRAMPOLINE clear ARG1

/*
 * clear_highpages_kasan_tagged(page, numpages): an int, whose upper half in
 * the register is anybody's.
 */
BMM_TRAMPOLINE alloc ARG1_INT

/* vmap_small_pages_range_noflush(addr, end, prot, pages) */
BMM_TRAMPOLINE vmap_pages ARG1 ARG0

/* vmap_range_noflush(addr, end, phys_addr, prot, max_page_shift) */
BMM_TRAMPOLINE vmap_range ARG1 ARG0

/* __vmap_pages_range_noflush(addr, end, prot, pages, page_shift) */
BMM_TRAMPOLINE vmap_huge ARG4_INT

/* get_vm_area_caller(size, flags, caller) */
BMM_TRAMPOLINE vmap_area ARG0
