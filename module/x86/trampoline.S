/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entered by a direct call from the patch site of the hooked function. On the
 * stack: the return address into the original body, above it the caller's. All
 * argument registers are live; only flags may change.
 *
 * One comparison serves as switch and as size filter. Small or switched off:
 * return into the original body. Else return to our own jump to the handler,
 * which then appears to its caller as if called directly. The unwinder sees a
 * function entry at both places, hence the two hints.
 *
 * Dropping the return address instead would leave it to the CPU's return
 * predictor, which would then be wrong for every frame above. Below 16 frames,
 * returning cost 35 ns without a hook, 132 ns then, 46 ns now (Intel family 6
 * model 167). CPUs whose returns go through a thunk that is never predicted
 * (SRSO, retbleed) neither lose nor gain.
 *
 * RAX may be used: it carries no argument except the number of vector registers
 * of a variadic call. (Compilers that generate ftrace's patch sites assume
 * nothing else about a callee.)
 */
#include <linux/linkage.h>
#include <linux/pgtable.h>
#include <asm/unwind_hints.h>

#define ARG0	 %rdi
#define ARG1	 %rsi
#define ARG1_INT %esi
#define ARG2	 %rdx

/* A filter sets the flags to B if the request is too small, or jumps to 1. */

/* an argument is the size */
.macro BMM_SIZE threshold arg
	cmp	\threshold(%rip), \arg
.endm

/* an int argument is the size; its upper half is undefined */
#define BMM_SIZE_INT BMM_SIZE

/* the difference of two arguments is the size */
.macro BMM_SPAN threshold from arg
	mov	\arg, %rax
	sub	\from, %rax
	cmp	\threshold(%rip), %rax
.endm

/* the same, unless all of it is PMD_SIZE blocks in both address spaces */
.macro BMM_SPAN_PARTLY threshold from arg other
	mov	\arg, %rax
	or	\from, %rax
	or	\other, %rax
	test	$(PMD_SIZE - 1), %eax
	jz	1f
	BMM_SPAN \threshold, \from, \arg
.endm

.macro BMM_TRAMPOLINE name filter args:vararg
SYM_CODE_START(bmm_\name\()_trampoline)
	UNWIND_HINT_FUNC
	ENDBR
	\filter	bmm_\name\()_threshold, \args
	jb	1f
	leaq	2f(%rip), %rax
	movq	%rax, (%rsp)
1:	RET
2:	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR		/* a return has no landing pad */
	jmp	bmm_\name\()_handler
SYM_CODE_END(bmm_\name\()_trampoline)
.endm
