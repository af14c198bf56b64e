/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks around an operation whose work is counted: instructions that do nothing
 * on any CPU. The lab's QEMU plugin (lab/qemu/work.c) recognises them when it
 * translates a guest's code, the kernel's or a process's. A record has two
 * slots, so that one operation may be marked within another; each slot adds up
 * what is marked until the next record. Work is counted on the CPU that marks:
 * stay on it between the marks.
 */
#ifndef BMM_MARK_H
#define BMM_MARK_H

#define BMM_MARK_RECORD	  0 /* begin a new record */
#define BMM_MARK_CLEAR	  1 /* discard what the record has so far */
#define BMM_MARK_BEGIN(s) (2 + 2 * (s))
#define BMM_MARK_END(s)	  (3 + 2 * (s))
#define BMM_MARK_SLOTS	  2

/* NOPL with a displacement that no compiler emits: 0f 1f 80 and this */
#define BMM_MARK_X86(mark) (0x6d6d6200 + (mark))
/* MOVZ XZR, #this, LSL #48: the result is discarded */
#define BMM_MARK_ARM64(mark) (0xb620 + (mark))

#if defined(__x86_64__)
#define bmm_mark(mark) \
	asm volatile("nopl %c0(%%rax)" ::"i"(BMM_MARK_X86(mark)) : "memory")
#elif defined(__aarch64__)
/* .inst: assemblers reject XZR here, or choose another encoding */
#define bmm_mark(mark)                                                         \
	asm volatile(".inst 0xd2e0001f + %c0 * 32" ::"i"(BMM_MARK_ARM64(mark)) \
		     : "memory")
#endif

#endif
