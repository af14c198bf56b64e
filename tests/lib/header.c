// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The header alone, twice, in a strict and old dialect. */
#include <bulkmm.h>
#include <bulkmm.h>

int main(void)
{
	return bmm_run_length(0, 0) || bmm_block_order(0, 0, 0, 0);
}
