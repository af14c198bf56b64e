/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies that bypass the cache and survive a machine check: what
 * copy_mc_to_kernel() is to REP MOVSB. Lines have 64 bytes, both addresses are
 * multiples of that, and so is the length, which is not 0.
 *
 * Whether and how prefetching the source helps differs from CPU to CPU:
 * core/x86/movnti.c. Any load of a line may be the one that meets the error. A
 * store cannot: it does not read.
 */
#include <linux/linkage.h>
#include <asm/asm.h>

/* Loads a word, or ends the copy. */
.macro BMM_LOAD at reg
.Lload\@:
	mov	\at(%rsi), \reg
	_ASM_EXTABLE_TYPE(.Lload\@, 2f, EX_TYPE_DEFAULT_MCE_SAFE)
.endm

/* Half a line: four words, then their stores. */
.macro BMM_COPY_HALF at
	BMM_LOAD \at, %r8
	BMM_LOAD \at+8, %r9
	BMM_LOAD \at+16, %r10
	BMM_LOAD \at+24, %r11
	movnti	%r8, \at(%rdi)
	movnti	%r9, \at+8(%rdi)
	movnti	%r10, \at+16(%rdi)
	movnti	%r11, \at+24(%rdi)
.endm

.macro BMM_COPY_LINE at
	BMM_COPY_HALF \at
	BMM_COPY_HALF \at+32
.endm

/* unsigned long NAME(void *dst, const void *src, size_t len): what is left */
.macro BMM_COPY_STREAMING name prefetch:vararg
SYM_FUNC_START(\name)
	mov	%rdx, %rax
1:	\prefetch
	BMM_COPY_LINE 0
	add	$64, %rsi
	add	$64, %rdi
	sub	$64, %rax
	jnz	1b
2:	sfence
	RET
SYM_FUNC_END(\name)
.endm

	.text

/*
 * Four pages in turn, 256 bytes of each, so that each keeps a stream of the
 * CPU's prefetcher and a row of the memory open; the source is prefetched 1 KiB
 * ahead, at the end of the pages that of the next four. On Emerald Rapids the
 * former gains a sixth with vector registers, the latter a quarter with these
 * (results/, copy-256m). What is left of four pages follows in order.
 */
SYM_FUNC_START(bmm_copy_movnti_pages)
	mov	%rdx, %rax
1:	cmp	$4 * 4096, %rax
	jb	5f
	mov	$4096 / 256, %ecx
4:	lea	1024(%rsi), %rdx
	cmp	$1024 / 256, %ecx
	ja	3f
	add	$3 * 4096, %rdx
3:
	.irp	page, 0, 4096, 8192, 12288
	.irp	line, 0, 64, 128, 192
	prefetcht0 \page+\line(%rdx)
	BMM_COPY_LINE \page+\line
	.endr
	.endr
	add	$256, %rsi
	add	$256, %rdi
	dec	%ecx
	jnz	4b
	add	$3 * 4096, %rsi
	add	$3 * 4096, %rdi
	sub	$4 * 4096, %rax
	jmp	1b
6:	BMM_COPY_LINE 0
	add	$64, %rsi
	add	$64, %rdi
	sub	$64, %rax
5:	test	%rax, %rax
	jnz	6b
2:	sfence
	RET
SYM_FUNC_END(bmm_copy_movnti_pages)

BMM_COPY_STREAMING bmm_copy_movnti
BMM_COPY_STREAMING bmm_copy_movnti_t0, prefetcht0 1024(%rsi)
BMM_COPY_STREAMING bmm_copy_movnti_nta, prefetchnta 2048(%rsi)
