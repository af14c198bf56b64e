// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Prints what bmm_persist() returns, for a range and for nothing. */
#include <bulkmm.h>

#include <stdio.h>

int main(void)
{
	static char bytes[300];

	printf("%d %d\n", bmm_persist(bytes + 1, 299), bmm_persist(NULL, 0));
	return 0;
}
