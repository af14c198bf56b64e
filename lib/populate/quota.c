// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How much CPU time the cgroup allows (versions 1 and 2). Read again for each
 * range that might get a second thread: limits change, and processes are moved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "populate.h"

#define PATH 448

/* The usual mount points of each version; a hybrid system has both. */
static const char *const roots_v1[] = { "/sys/fs/cgroup/cpu",
					"/sys/fs/cgroup/cpu,cpuacct", NULL };
static const char *const roots_v2[] = { "/sys/fs/cgroup/unified",
					"/sys/fs/cgroup", NULL };

/* The CPUs, rounded up, that one cgroup directory allows; 0: no limit. */
static unsigned int quota_at(const char *directory, bool v2)
{
	char path[PATH + 32], text[64];
	long quota = 0, period = 0;

	snprintf(path, sizeof(path), "%s/%s", directory,
		 v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!kernel_text(path, text, sizeof(text)))
		return 0;
	if (v2) {
		sscanf(text, "%ld %ld", &quota, &period); /* or "max" */
	} else {
		quota = atol(text); /* or -1 */
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
		if (quota > 0 && kernel_text(path, text, sizeof(text)))
			period = atol(text);
	}
	if (quota <= 0 || period <= 0)
		return 0;
	return (unsigned int)((quota + period - 1) / period);
}

/* The least of a cgroup and all above it; in a container @root is its own. */
static unsigned int quota_below(const char *root, const char *group, bool v2)
{
	unsigned int least = quota_at(root, v2);
	char path[PATH];

	snprintf(path, sizeof(path), "%s%s", root, group);
	for (; strlen(path) > strlen(root); *strrchr(path, '/') = 0)
		least = lower(least, quota_at(path, v2));
	return least;
}

/* A list such as "cpu,cpuacct". */
static bool has_cpu(const char *list)
{
	size_t len;

	for (;; list += len + 1) {
		len = strcspn(list, ",:");
		if (len == 3 && !memcmp(list, "cpu", 3))
			return true;
		if (list[len] != ',')
			return false;
	}
}

/* The group of a line such as "4:cpu,cpuacct:/group", if it has the controller. */
static const char *group_of(const char *line, bool *v2)
{
	const char *list = strchr(line, ':');
	const char *group = list ? strchr(list + 1, ':') : NULL;

	if (!group)
		return NULL;
	*v2 = group == list + 1;
	if (!*v2 && !has_cpu(list + 1))
		return NULL;
	return group[1] == '/' && !group[2] ? "" : group + 1;
}

/**
 * cpus_quota() - how many CPUs' worth of time the cgroups allow
 *
 * Return: CPUs, rounded up; 0: no limit.
 */
unsigned int cpus_quota(void)
{
	const char *const *root, *group;
	unsigned int least = 0;
	struct maps lines;
	char line[PATH];
	bool v2;

	if (!lines_open(&lines, "/proc/self/cgroup"))
		return 0;
	while (lines_next(&lines, line, sizeof(line))) {
		group = group_of(line, &v2);
		if (!group)
			continue;
		/* the first that is mounted */
		for (root = v2 ? roots_v2 : roots_v1; *root; root++)
			if (!access(*root, F_OK))
				break;
		if (*root)
			least = lower(least, quota_below(*root, group, v2));
	}
	maps_close(&lines);
	return least;
}
