// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes branch predictors forget. What ran before, in the process or in the
 * module's init function, leaves them in a state that a short loop keeps for as
 * long as the process lives: the same calls that map 1 GiB by PMDs took 12.6 or
 * 17 microseconds from process to process (Zen 5, Safe RET), and of two kernels
 * either was the faster, as a module was loaded or not.
 *
 * Conditional branches at many addresses, taken or not at random, replace it. A
 * quarter of the passes is enough on Zen 5. They take a third of a millisecond.
 */
#include "native.h"

#define PASSES 32

/* Bit 63 of a linear congruential generator decides (Knuth's constants). */
#define BRANCHES           \
	".rept 2048\n\t"   \
	"imulq %1, %0\n\t" \
	"addq %2, %0\n\t"  \
	"js 1f\n\t"        \
	"nop\n"            \
	"1:\n\t"           \
	".endr"

/* Before a sample: every variant begins with predictors that know none. */
void branches_forget(void)
{
	static uint64_t number = 1;
	unsigned int i;

	for (i = 0; i < PASSES; i++)
		asm volatile(BRANCHES
			     : "+r"(number)
			     : "r"(6364136223846793005ULL),
			       "r"(1442695040888963407ULL)
			     : "cc");
}
