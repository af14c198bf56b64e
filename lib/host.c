// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What core/bmm_host.h asks of a process: a clock, memory nodes, a counter. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bmm_host.h"

/* Below, asking (0.3 us) would cost more than a thousandth of the work. */
#define ASK_NODE_FROM (16UL << 20)

__thread unsigned int bmm_host_turns
	__attribute__((__tls_model__("initial-exec")));

uint64_t bmm_host_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/*
 * The first page answers for all. move_pages() without target nodes only looks:
 * get_mempolicy() would map the zero page where nobody has touched the memory
 * yet, and tell that page's node. A filter of system calls may refuse: then the
 * node is not known.
 */
int bmm_host_node(const void *dst, size_t len)
{
	int node = -1, before = errno;

	if (len < ASK_NODE_FROM)
		return -1;
	if (syscall(SYS_move_pages, 0, 1UL, &dst, NULL, &node, 0)) {
		errno = before; /* nothing here is an error to the caller */
		return -1;
	}
	return node < 0 ? -1 : node;
}
