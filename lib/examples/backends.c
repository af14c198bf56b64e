// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lists the backends of this CPU for each operation, the one that serves in
 * brackets. If a BULKMM_ variable names none of them: a line on standard error
 * and exit code 2. To force one: BULKMM_CLEAR=rep-b ./backends
 */
#include <stdio.h>

#include <bulkmm.h>

static const char *const operations[BMM_OPS] = {
	[BMM_STAMP] = "stamp",
	[BMM_COPY] = "copy",
	[BMM_COPY_STREAMING] = "copy-streaming",
	[BMM_CLEAR] = "clear",
	[BMM_CLEAR_STREAMING] = "clear-streaming",
};

int main(void)
{
	char list[400];
	int op;

	for (op = 0; op < BMM_OPS; op++) {
		bmm_backend_list((enum bmm_op)op, 2 << 20, list, sizeof(list));
		printf("%-16s %s\n", operations[op], list);
	}
	if (!bmm_environment_error(list, sizeof(list)))
		return 0;
	fprintf(stderr, "%s\n", list);
	return 2;
}
