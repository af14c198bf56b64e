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

#define ARG0	 %rdi
#define ARG1	 %rsi
#define ARG1_INT %esi
#define ARG2	 %rdx
#define ARG4_INT %r8d

.macro BMM_TRAMPOLINE name arg from
SYM_CODE_START(bmm_\name\()_trampoline)
	UNWIND_HINT_FUNC
	ENDBR
	.ifb \from
	cmp	bmm_\name\()_threshold(%rip), \arg
	.else
	mov	\arg, %rax
	sub	\from, %rax
	cmp	bmm_\name\()_threshold(%rip), %rax
	.endif
	jb	1f
	addq	$8, %rsp
	UNWIND_HINT_FUNC
	jmp	bmm_\name\()_handler
1:	UNWIND_HINT_FUNC
	RET
SYM_CODE_END(bmm_\name\()_trampoline)
.endm
