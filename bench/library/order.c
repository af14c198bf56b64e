// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random numbers, and a random order, that are reproducible from a seed. */
#include "common.h"

/*
 * The next random number; its upper bits are the better ones. The state is
 * never 0. xorshift64*: good enough for orders, and the same on every machine.
 */
uint64_t order_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* Shuffles numbers. */
void order_shuffle(size_t *order, size_t n, uint64_t *state)
{
	for (; n > 1; n--) {
		size_t partner = (size_t)((order_random(state) >> 32) % n);
		size_t swapped = order[n - 1];

		order[n - 1] = order[partner];
		order[partner] = swapped;
	}
}
