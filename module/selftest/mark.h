/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks for whoever counts the work of an operation: instructions that do
 * nothing on any CPU. The lab's QEMU plugin (lab/qemu/work.c) knows them when
 * it translates a guest's code, which may be the kernel's or a process's. A
 * record has two slots, so that one operation may be marked within another; in
 * each the work of all that was marked until the next record adds up.
 * Who marks stays on its CPU meanwhile, for the work is counted there.
 */
#ifndef BMM_MARK_H
#define BMM_MARK_H

#define BMM_MARK_RECORD	  0 /* what follows belongs to a new record */
#define BMM_MARK_CLEAR	  1 /* what the record has until now is not wanted */
#define BMM_MARK_BEGIN(s) (2 + 2 * (s))
#define BMM_MARK_END(s)	  (3 + 2 * (s))
#define BMM_MARK_SLOTS	  2

/* NOPL with a displacement that no compiler chooses: 0f 1f 80 and this */
#define BMM_MARK_X86(mark) (0x6d6d6200 + (mark))
/* MOVZ XZR, #this, LSL #48: a result that is thrown away */
#define BMM_MARK_ARM64(mark) (0xb620 + (mark))

#if defined(__x86_64__)
#define bmm_mark(mark) \
	asm volatile("nopl %c0(%%rax)" ::"i"(BMM_MARK_X86(mark)) : "memory")
#elif defined(__aarch64__)
/* .inst: assemblers refuse XZR's name here, or choose another encoding */
#define bmm_mark(mark)                                                         \
	asm volatile(".inst 0xd2e0001f + %c0 * 32" ::"i"(BMM_MARK_ARM64(mark)) \
		     : "memory")
#endif

#endif
