/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What modules of guests call of older kernels, and what several of them need.
 * BMM_TEST_CALLS(DO) has DO(name, type) for each function by static call.
 */
#ifndef BMM_LAB_COMPAT_H
#define BMM_LAB_COMPAT_H

#include "../../../module/compat/compat.h"

/*
 * 6.9 added areas that their owners fill and empty page by page. Before, such
 * owners call what these functions call, in areas that get no PMD mappings for
 * another reason (bmm_vmap_blocks_allowed()).
 */
#ifdef BMM_HAVE_VM_SPARSE
#define BMM_TEST_CALLS(DO)                        \
	DO(vm_area_map_pages, vm_area_map_pages); \
	DO(vm_area_unmap_pages, vm_area_unmap_pages);
#define BMM_TEST_SPARSE		VM_SPARSE
#define bmm_vm_area_map_pages	static_call(vm_area_map_pages)
#define bmm_vm_area_unmap_pages static_call(vm_area_unmap_pages)
#else
#define BMM_TEST_CALLS(DO)
#define BMM_TEST_SPARSE VM_ALLOC
#define bmm_vm_area_map_pages(area, addr, end, pages) \
	bmm_vmap_pages_range(addr, end, PAGE_KERNEL, pages, PAGE_SHIFT)
#define bmm_vm_area_unmap_pages(area, addr, end) bmm_vunmap_range(addr, end)
#endif

/* A function void NAME(void) of this text alone. */
#define BMM_ASM_FUNCTION(name, code)                                          \
	void name(void);                                                      \
	asm(".pushsection .text, \"ax\", @progbits\n"                         \
	    ".type " #name ", @function\n"                                    \
	    ".globl " #name "\n" #name ":\n" code ".size " #name ", .-" #name \
	    "\n"                                                              \
	    ".popsection\n")

#endif
