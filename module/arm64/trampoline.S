/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entered from the patch site of the hooked function, by BL or through
 * ftrace_caller, with the function's caller in x9 and the return into the
 * original body in x30. Argument registers are live, x10 to x17 are free.
 *
 * One comparison serves as switch and as size filter. Small or switched off:
 * return into the original body. Else drop that return address and go to the
 * handler, which then appears to its caller as if called directly.
 *
 * A separate return stub leads to the body, which may lack a landing pad: BTI
 * checks BR and BLR, but not RET. The words before the trampoline tell site.h
 * where the stub is, and where it reads its target.
 */
#include <linux/linkage.h>
#include <linux/pgtable.h>

#define ARG0	 x0
#define ARG1	 x1
#define ARG1_INT w1
#define ARG2	 x2
#define ARG4_INT w4

/* A filter sets the flags to LO if the request is too small. */

.macro BMM_THRESHOLD threshold
	adrp	x16, \threshold
	ldr	x16, [x16, :lo12:\threshold]
.endm

/* an argument is the size */
.macro BMM_SIZE threshold arg
	BMM_THRESHOLD \threshold
	cmp	\arg, x16
.endm

/* an int argument is the size; its upper half is undefined */
.macro BMM_SIZE_INT threshold arg
	BMM_THRESHOLD \threshold
	cmp	\arg, w16
.endm

/* the difference of two arguments is the size */
.macro BMM_SPAN threshold from arg
	BMM_THRESHOLD \threshold
	sub	x17, \arg, \from
	cmp	x17, x16
.endm

/* the same, unless all of it is PMD_SIZE blocks in both address spaces */
.macro BMM_SPAN_PARTLY threshold from arg other
	BMM_THRESHOLD \threshold
	orr	x17, \arg, \from
	orr	x17, x17, \other
	sub	x15, \arg, \from
	tst	x17, #(PMD_SIZE - 1)
	ccmp	x15, x16, #0, ne
.endm

/* the same, only if a third argument is the shift of contpte groups */
.macro BMM_SPAN_GROUPS threshold from arg shift
	BMM_THRESHOLD \threshold
	sub	x17, \arg, \from
	cmp	\shift, #CONT_PTE_SHIFT
	ccmp	x17, x16, #0, eq
.endm

.macro BMM_TRAMPOLINE name filter args:vararg
	.pushsection .bss
	.balign	8
bmm_\name\()_body:
	.zero	8
	.popsection

SYM_CODE_START_LOCAL(bmm_\name\()_back)
	hint	34			/* bti c */
	adrp	x16, bmm_\name\()_body
	ldr	x16, [x16, :lo12:bmm_\name\()_body]
	ret	x16
SYM_CODE_END(bmm_\name\()_back)

	.balign	16
	.quad	bmm_\name\()_body
	.quad	bmm_\name\()_back
SYM_CODE_START_NOALIGN(bmm_\name\()_trampoline)
	hint	34			/* bti c */
	\filter	bmm_\name\()_threshold, \args
	b.lo	1f
	mov	x30, x9
	b	bmm_\name\()_handler
1:	mov	x10, x30
	mov	x30, x9
	ret	x10
SYM_CODE_END(bmm_\name\()_trampoline)
.endm
