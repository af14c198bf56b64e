// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where threads may run: affinity, and the nodes that memory comes from. What
 * the system does not say, or a container hides, counts as unlimited.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define NODES	   "/sys/devices/system/node/"
#define FLAG_ADDR  2UL
#define NODES_PASS (NODES_MAX + 1) /* the kernel subtracts one */

/* Reads a file of /proc or /sys; returns the bytes read, 0 if there is none. */
size_t kernel_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return 0;
	got = read(fd, text, size - 1);
	close(fd);
	text[got < 0 ? 0 : got] = 0;
	return got < 0 ? 0 : (size_t)got;
}

/* Adds what a list such as "0-3,8" has. */
static void add_items(const char *text, cpu_set_t *set, size_t size)
{
	unsigned long first, last;
	char *end;

	for (; *text >= '0' && *text <= '9';
	     text = *end == ',' ? end + 1 : end) {
		first = last = strtoul(text, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < 8 * size; first++)
			CPU_SET_S(first, size, set);
	}
}

/*
 * Adds a list of any length from a file; returns false if it cannot be read. In
 * parts, as the stack may be a little one: the last item of a part may go on.
 */
static bool add_list(const char *path, cpu_set_t *set, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[256], *comma;
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		return false;
	while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
		len += (size_t)got;
		text[len] = 0;
		comma = strrchr(text, ',');
		if (!comma)
			continue;
		*comma = 0;
		add_items(text, set, size);
		len -= (size_t)(comma + 1 - text);
		memmove(text, comma + 1, len);
	}
	close(fd);
	text[len] = 0;
	add_items(text, set, size);
	return len;
}

/* The CPUs that the calling thread may use; returns how many, 0: unknown. */
unsigned int cpus_allowed(struct cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	if (sched_getaffinity(0, sizeof(*cpus), cpus->bits))
		return 0;
	return SET_COUNT(cpus);
}

void cpus_bind(const struct cpus *cpus)
{
	sched_setaffinity(0, sizeof(*cpus), cpus->bits);
}

/* Restricts @cpus to those of some nodes, if any are; returns how many. */
unsigned int cpus_of_nodes(const struct nodes *nodes, struct cpus *cpus)
{
	struct cpus near = { 0 };
	char path[64];
	unsigned int i;

	for (i = 0; i < NODES_MAX; i++) {
		if (!SET_HAS(nodes, i))
			continue;
		snprintf(path, sizeof(path), NODES "node%u/cpulist", i);
		add_list(path, near.bits, sizeof(near));
	}
	CPU_AND_S(sizeof(near), near.bits, near.bits, cpus->bits);
	if (SET_COUNT(&near))
		*cpus = near;
	return SET_COUNT(cpus);
}

static void nodes_in(const char *path, struct nodes *nodes)
{
	memset(nodes, 0, sizeof(*nodes));
	if (!add_list(path, nodes->bits, sizeof(*nodes)))
		SET_ADD(nodes, 0);
}

bool nodes_online(unsigned int node)
{
	struct nodes nodes;

	nodes_in(NODES "online", &nodes);
	return SET_HAS(&nodes, node);
}

/* Remembered if there never will be any. */
bool nodes_several(void)
{
	static bool never;
	struct nodes nodes;

	if (__atomic_load_n(&never, __ATOMIC_RELAXED))
		return false;
	nodes_in(NODES "possible", &nodes);
	if (SET_COUNT(&nodes) <= 1) {
		__atomic_store_n(&never, true, __ATOMIC_RELAXED);
		return false;
	}
	nodes_in(NODES "online", &nodes);
	return SET_COUNT(&nodes) > 1;
}

static long get_policy(int *mode, struct nodes *nodes, const void *addr)
{
	memset(nodes, 0, sizeof(*nodes));
	return syscall(SYS_get_mempolicy, mode, nodes->bits,
		       (unsigned long)NODES_PASS, addr, addr ? FLAG_ADDR : 0UL);
}

/**
 * nodes_of() - the nodes that the pages of a mapping will come from
 * @addr:  an address in it
 * @nodes: result: from the mapping's policy, else from the thread's, else the
 *         node that the thread runs on
 *
 * Return: the latter, if there is no policy at all; else -1.
 */
int nodes_of(const void *addr, struct nodes *nodes)
{
	unsigned int node;
	bool local;
	int mode;

	if (get_policy(&mode, nodes, addr))
		mode = MODE_DEFAULT;
	else if (SET_COUNT(nodes))
		return -1;
	/* MPOL_LOCAL has no nodes, and precedes the thread's policy. */
	local = mode != MODE_DEFAULT;
	if (!local && !get_policy(&mode, nodes, NULL) && SET_COUNT(nodes))
		return -1;
	memset(nodes, 0, sizeof(*nodes));
	if (syscall(SYS_getcpu, NULL, &node, NULL))
		return -1;
	SET_ADD(nodes, node);
	return local ? -1 : (int)node;
}

/* The calling thread's policy; returns 0, or a negative error number. */
int policy_get(struct policy *policy)
{
	return get_policy(&policy->mode, &policy->nodes, NULL) ? -errno : 0;
}

/**
 * policy_set() - allocate this thread's new pages from one node
 * @mode: MODE_BIND, or MODE_PREFERRED
 * @node: the node
 *
 * Return: 0, or a negative error number.
 */
int policy_set(int mode, unsigned int node)
{
	struct nodes nodes = { 0 };

	if (node >= NODES_MAX)
		return -EINVAL;
	SET_ADD(&nodes, node);
	return syscall(SYS_set_mempolicy, mode, nodes.bits,
		       (unsigned long)NODES_PASS) ?
		       -errno :
		       0;
}

void policy_restore(const struct policy *before)
{
	bool empty = !SET_COUNT(&before->nodes);

	syscall(SYS_set_mempolicy, before->mode,
		empty ? NULL : before->nodes.bits,
		empty ? 0UL : (unsigned long)NODES_PASS);
}
