// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The header alone, twice, in a strict and old dialect. */
#include <bulkmm.h>
#include <bulkmm.h>

int main(void)
{
	return !*bmm_version() || bmm_fill(0, "x", 1, 0);
}
