/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entered by a direct call from the ftrace site of the function taken over.
 * On the stack: the return address into the original body, above it the
 * caller's. All argument registers are live; only flags may change.
 *
 * One comparison serves as switch and as size filter. Small or switched off:
 * return into the original body. Else drop our return address and jump to
 * the handler, which then looks to its caller as if called directly. The
 * unwinder sees a function entry at both places, hence the two hints.
 *
 * A size may be the distance of two arguments: RAX, which carries none but the
 * number of vector registers of a variadic call, is free for it. (Compilers
 * that are told to make ftrace sites assume nothing else about a callee.)
 */
#include <linux/linkage.h>
#include <asm/unwind_hints.h>

.macro BMM_TRAMPOLINE name handler threshold size compare=cmpq from=
SYM_CODE_START(\name)
	UNWIND_HINT_FUNC
	ENDBR
	.ifb \from
	\compare	\threshold(%rip), \size
	.else
	movq	\size, %rax
	subq	\from, %rax
	\compare	\threshold(%rip), %rax
	.endif
	jb	1f
	addq	$8, %rsp
	UNWIND_HINT_FUNC
	jmp	\handler
1:	UNWIND_HINT_FUNC
	RET
SYM_CODE_END(\name)
.endm

	.text

/* memmap_init_zone_device(zone, start_pfn, nr_pages, pgmap) */
BMM_TRAMPOLINE bmm_memmap_trampoline bmm_memmap_handler \
	       bmm_memmap_threshold %rdx

/*
 * folio_zero_user(folio, addr_hint): no size to filter by, so the address, of
 * which none is as large as the threshold that lets everything pass.
 */
BMM_TRAMPOLINE bmm_clear_trampoline bmm_clear_handler \
	       bmm_clear_threshold %rsi

/*
 * clear_highpages_kasan_tagged(page, numpages): an int, whose upper half in
 * the register is anybody's.
 */
BMM_TRAMPOLINE bmm_alloc_trampoline bmm_alloc_handler \
	       bmm_alloc_threshold %esi cmpl

/* vmap_small_pages_range_noflush(addr, end, prot, pages) */
BMM_TRAMPOLINE bmm_vmap_pages_trampoline bmm_vmap_pages_handler \
	       bmm_vmap_pages_threshold %rsi from=%rdi

/* vmap_range_noflush(addr, end, phys_addr, prot, max_page_shift) */
BMM_TRAMPOLINE bmm_vmap_range_trampoline bmm_vmap_range_handler \
	       bmm_vmap_range_threshold %rsi from=%rdi

/* __vmap_pages_range_noflush(addr, end, prot, pages, page_shift) */
BMM_TRAMPOLINE bmm_vmap_huge_trampoline bmm_vmap_huge_handler \
	       bmm_vmap_huge_threshold %r8d cmpl

/* get_vm_area_caller(size, flags, caller) */
BMM_TRAMPOLINE bmm_vmap_area_trampoline bmm_vmap_area_handler \
	       bmm_vmap_area_threshold %rdi
