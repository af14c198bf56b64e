// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where threads may run and how much CPU time they may use: affinity, cgroup
 * quotas (v1 and v2), the nodes that memory comes from. What the system does
 * not say, or a container hides, counts as unlimited.
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

#define MODE_BIND  2 /* as in <linux/mempolicy.h> */
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

/* Adds a list such as "0-3,8". */
static void add_list(const char *text, unsigned long *bits, unsigned long max)
{
	unsigned long first, last;
	char *end;

	for (; *text >= '0' && *text <= '9';
	     text = *end == ',' ? end + 1 : end) {
		first = last = strtoul(text, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < max; first++)
			bit_set(bits, first);
	}
}

static unsigned int count(const struct cpus *cpus)
{
	unsigned int i, sum = 0;

	for (i = 0; i < WORDS(CPUS_MAX); i++)
		sum += (unsigned int)__builtin_popcountl(cpus->bits[i]);
	return sum;
}

/* The CPUs that the calling thread may use; returns how many, 0: unknown. */
unsigned int cpus_allowed(struct cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	if (sched_getaffinity(0, sizeof(*cpus), (cpu_set_t *)cpus))
		return 0;
	return count(cpus);
}

void cpus_bind(const struct cpus *cpus)
{
	sched_setaffinity(0, sizeof(*cpus), (const cpu_set_t *)cpus);
}

/* Restricts @cpus to those of some nodes, if any are; returns how many. */
unsigned int cpus_of_nodes(const struct nodes *nodes, struct cpus *cpus)
{
	struct cpus near = { { 0 } };
	char path[64], text[4096];
	unsigned int i;

	for (i = 0; i < NODES_MAX; i++) {
		if (!bit_is_set(nodes->bits, i))
			continue;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%u/cpulist", i);
		if (kernel_text(path, text, sizeof(text)))
			add_list(text, near.bits, CPUS_MAX);
	}
	for (i = 0; i < WORDS(CPUS_MAX); i++)
		near.bits[i] &= cpus->bits[i];
	if (count(&near))
		*cpus = near;
	return count(cpus);
}

/* The CPUs, rounded up, that one cgroup directory allows; 0: no limit. */
static unsigned long quota_at(const char *directory)
{
	char path[512], text[64];
	long quota = 0, period = 0;

	snprintf(path, sizeof(path), "%s/cpu.max", directory);
	if (kernel_text(path, text, sizeof(text))) {
		sscanf(text, "%ld %ld", &quota, &period); /* or "max" */
	} else {
		snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
		if (kernel_text(path, text, sizeof(text)))
			quota = atol(text); /* or -1 */
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
		if (kernel_text(path, text, sizeof(text)))
			period = atol(text);
	}
	if (quota <= 0 || period <= 0)
		return 0;
	return (unsigned long)((quota + period - 1) / period);
}

/* The least of a cgroup and all above it. */
static unsigned long quota_below(const char *root, const char *group)
{
	unsigned long least = 0, here;
	char path[448];
	char *end;

	snprintf(path, sizeof(path), "%s%s", root, group);
	while (strlen(path) > strlen(root)) {
		here = quota_at(path);
		if (here && (!least || here < least))
			least = here;
		end = strrchr(path, '/');
		*end = 0;
	}
	here = quota_at(root); /* in a container, its own limit */
	return here && (!least || here < least) ? here : least;
}

/**
 * cpus_quota() - how many CPUs' worth of time the cgroups allow
 *
 * Searches the usual mount points of cgroup v2 and v1.
 *
 * Return: CPUs, rounded up; 0: no limit.
 */
unsigned int cpus_quota(void)
{
	static const char *const roots[] = {
		"/sys/fs/cgroup",
		"/sys/fs/cgroup/unified",
		"/sys/fs/cgroup/cpu",
		"/sys/fs/cgroup/cpu,cpuacct",
	};
	unsigned long least = 0, here;
	char text[4096];
	char *line, *save, *group;
	size_t i;

	if (!kernel_text("/proc/self/cgroup", text, sizeof(text)))
		return 0;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		group = strchr(line, ':');
		group = group ? strchr(group + 1, ':') : NULL;
		if (!group || (!strstr(line, "::") && !strstr(line, "cpu")))
			continue;
		if (!strcmp(++group, "/"))
			group = "";
		for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
			here = quota_below(roots[i], group);
			if (here && (!least || here < least))
				least = here;
		}
	}
	return (unsigned int)least;
}

static void online(struct nodes *nodes)
{
	char text[4096];

	memset(nodes, 0, sizeof(*nodes));
	if (kernel_text("/sys/devices/system/node/online", text, sizeof(text)))
		add_list(text, nodes->bits, NODES_MAX);
	else
		bit_set(nodes->bits, 0);
}

bool nodes_online(unsigned int node)
{
	struct nodes nodes;

	online(&nodes);
	return node < NODES_MAX && bit_is_set(nodes.bits, node);
}

bool nodes_several(void)
{
	struct nodes nodes;
	unsigned int i, sum = 0;

	online(&nodes);
	for (i = 0; i < WORDS(NODES_MAX); i++)
		sum += (unsigned int)__builtin_popcountl(nodes.bits[i]);
	return sum > 1;
}

static bool any(const struct nodes *nodes)
{
	unsigned int i;

	for (i = 0; i < WORDS(NODES_MAX); i++)
		if (nodes->bits[i])
			return true;
	return false;
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
 */
void nodes_of(const void *addr, struct nodes *nodes)
{
	unsigned int node;
	int mode;

	if (!get_policy(&mode, nodes, addr) && any(nodes))
		return;
	if (!get_policy(&mode, nodes, NULL) && any(nodes))
		return;
	memset(nodes, 0, sizeof(*nodes));
	if (!syscall(SYS_getcpu, NULL, &node, NULL) && node < NODES_MAX)
		bit_set(nodes->bits, node);
}

/**
 * policy_bind() - allocate this thread's new pages from one node
 * @node:   the node
 * @before: result: the old policy, for policy_restore(); may be NULL
 *
 * Return: 0, or a negative error number.
 */
int policy_bind(unsigned int node, struct policy *before)
{
	struct nodes nodes = { { 0 } };

	if (node >= NODES_MAX)
		return -EINVAL;
	bit_set(nodes.bits, node);
	if (before && get_policy(&before->mode, &before->nodes, NULL))
		return -errno;
	return syscall(SYS_set_mempolicy, MODE_BIND, nodes.bits,
		       (unsigned long)NODES_PASS) ?
		       -errno :
		       0;
}

void policy_restore(const struct policy *before)
{
	bool empty = !any(&before->nodes);

	syscall(SYS_set_mempolicy, before->mode,
		empty ? NULL : before->nodes.bits,
		empty ? 0UL : (unsigned long)NODES_PASS);
}
