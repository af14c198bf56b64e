// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets the CPU's branch predictors. What they learnt from earlier code,
 * of this process or of another, decides how well they predict a short loop
 * with many returns, for as long as it is called: a loop that maps 1 GiB by
 * PMDs took 13.0 or 17.5 microseconds, from process to process, once the
 * module's init function had run on that CPU; so did another kernel's loop, in
 * other processes (Zen 5, Safe RET). So which of the two was faster was chance.
 *
 * Conditional branches at many addresses, taken or not at random, replace what
 * was learnt. Not taken at all, the same branches change nothing. Half of them
 * is enough on Zen 5, where they take 0.8 milliseconds.
 */
#include "native.h"

#define PASSES 32

/* Bit 63 of a linear congruential generator decides (Knuth's constants). */
#define BRANCHES           \
	".rept 4096\n\t"   \
	".p2align 5\n\t"   \
	"imulq %1, %0\n\t" \
	"addq %2, %0\n\t"  \
	"js 1f\n\t"        \
	"jmp 2f\n"         \
	"1:\n\t"           \
	"nop\n"            \
	"2:\n\t"           \
	".endr"

static bool reset;

/* Before a sample; evicts the caches of instructions, too. */
void branches_reset(void)
{
	static uint64_t number = 1;
	unsigned int i;

	reset = true;
	for (i = 0; i < PASSES; i++)
		asm volatile(BRANCHES
			     : "+&r"(number)
			     : "r"(6364136223846793005ULL),
			       "r"(1442695040888963407ULL)
			     : "cc");
}

/* Whether they were reset, for results. */
const char *branches_state(void)
{
	return reset ? "reset" : "kept";
}
