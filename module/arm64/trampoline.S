/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entered from the ftrace site of the function taken over, by BL or by way of
 * ftrace_caller, with the function's caller in x9 and the return into the
 * original body in x30. Argument registers are live, x10 to x17 are free.
 *
 * One comparison serves as switch and as size filter. Small or switched off:
 * return into the original body. Else drop that return address and go to the
 * handler, which then looks to its caller as if called directly.
 *
 * Beside it a way back to the body, which nothing is meant to jump to: it may
 * begin without a landing pad. BTI checks BR and BLR, but not RET. The words
 * before the trampoline tell site.h where the way back is, and where it looks
 * for its target.
 */
#include <linux/linkage.h>

#define ARG0	 x,0
#define ARG1	 x,1
#define ARG1_INT w,1
#define ARG2	 x,2
#define ARG4_INT w,4

.macro BMM_TRAMPOLINE name kind arg from_kind from
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
	adrp	x16, bmm_\name\()_threshold
	ldr	\kind\()16, [x16, :lo12:bmm_\name\()_threshold]
	.ifb \from
	cmp	\kind\arg, \kind\()16
	.else
	sub	x17, x\arg, x\from
	cmp	x17, x16
	.endif
	b.lo	1f
	mov	x30, x9
	b	bmm_\name\()_handler
1:	mov	x10, x30
	mov	x30, x9
	ret	x10
SYM_CODE_END(bmm_\name\()_trampoline)
.endm
