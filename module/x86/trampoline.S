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
 */
#include <linux/linkage.h>
#include <asm/unwind_hints.h>

.macro BMM_TRAMPOLINE name handler threshold size compare=cmpq
SYM_CODE_START(\name)
	UNWIND_HINT_FUNC
	ENDBR
	\compare	\threshold(%rip), \size
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
