/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A function with an ftrace site that is patched, its caller, and the module's
 * trampoline between them. Exits with what went wrong, 0 if nothing did.
 */
#include "arm64/trampoline.S"

	.text
BMM_TRAMPOLINE test, BMM_SIZE, ARG2

/* function(a, b, size): a + b, called through a pointer */
SYM_CODE_START_LOCAL(function)
	hint	34			/* bti c */
	mov	x9, x30
	bl	bmm_test_trampoline
	add	x0, x0, x1		/* the body: no landing pad */
	ret
SYM_CODE_END(function)

/* Serves by ten times what the original gives. */
SYM_CODE_START(bmm_test_handler)
	stp	x29, x30, [sp, #-16]!
	adr	x9, bmm_test_trampoline
	ldp	x10, x11, [x9, #-16]
	adr	x12, function + 12
	str	x12, [x10]
	blr	x11
	mov	x9, #10
	mul	x0, x0, x9
	ldp	x29, x30, [sp], #16
	ret
SYM_CODE_END(bmm_test_handler)

/* Calls with a size of w2 and exits with w19 unless it gives w20. */
SYM_CODE_START_LOCAL(expect)
	stp	x29, x30, [sp, #-16]!
	mov	x0, #3
	mov	x1, #4
	adr	x16, function
	blr	x16
	cmp	x0, x20
	b.ne	bad
	ldp	x29, x30, [sp], #16
	ret
SYM_CODE_END(expect)

SYM_CODE_START(_start)
	mov	w19, #1
	mov	x20, #7			/* below the threshold: the body's */
	mov	x2, #99
	bl	expect
	mov	w19, #2
	mov	x20, #70		/* at the threshold: the handler's */
	mov	x2, #100
	bl	expect
	mov	w19, #0
bad:	mov	w0, w19
	mov	w8, #93			/* exit */
	svc	#0
SYM_CODE_END(_start)

	.data
	.balign	8
bmm_test_threshold:
	.quad	100

/* Told to the loader: the text is guarded, branches must find landing pads. */
	.section .note.gnu.property, "a"
	.balign	8
	.word	4, 16, 5		/* name, description, properties */
	.asciz	"GNU"
	.word	0xc0000000, 4, 1, 0	/* AArch64 features: BTI */
