// SPDX-License-Identifier: GPL-2.0-only
/* The memory blocks of a node: taken offline, and waited for. */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bmmplug.h"
#include "mark.h"
#include "measure.h"

static int is_block(const char *name)
{
	return !strncmp(name, "memory", 6) && name[6] &&
	       !name[6 + strspn(name + 6, "0123456789")];
}

/* Opens a node's directory and enters it; without memory a node has none. */
static DIR *node_blocks(const char *node)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%s", node);
	return chdir(path) ? NULL : opendir(".");
}

static int write_offline(const char *block)
{
	char path[272];
	int fd, tries = 500;

	snprintf(path, sizeof(path), "%s/state", block);
	errno = 0;
	fd = open(path, O_WRONLY);
	if (fd < 0)
		err(1, "%s", path);
	/* a page may be in use for the moment */
	while (write(fd, "offline", 7) < 0 && errno == EBUSY && tries--)
		usleep(10000);
	/* EINVAL: it is offline already */
	if (tries < 0 || (errno && errno != EINVAL && errno != EBUSY))
		err(1, "%s", path);
	close(fd);
	return 0;
}

int offline(const char *node)
{
	uint64_t start = now();
	DIR *all = node_blocks(node);
	struct dirent *entry;

	if (!all)
		err(1, "%s", node);
	stay();
	bmm_mark(BMM_MARK_BEGIN(1));
	while ((entry = readdir(all)))
		if (is_block(entry->d_name) && write_offline(entry->d_name))
			return 1;
	bmm_mark(BMM_MARK_END(1));
	closedir(all);
	printf("%lu\n", now() - start);
	return 0;
}

static int is_online(const char *block)
{
	char path[272], state[8] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/state", block);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0; /* it was removed meanwhile */
	if (read(fd, state, sizeof(state) - 1) < 0)
		state[0] = 0;
	close(fd);
	return !strcmp(state, "online\n");
}

/* Counts a node's blocks, all of them or those online; -1: there is no node. */
static int count(const char *node, int online)
{
	DIR *all = node_blocks(node);
	struct dirent *entry;
	int n = 0;

	if (!all)
		return -1;
	while ((entry = readdir(all)))
		n += is_block(entry->d_name) &&
		     (!online || is_online(entry->d_name));
	closedir(all);
	return n;
}

/*
 * Is the last operation over? A block reads "online" once online_pages() has
 * returned. The last block of a node is unlinked in the middle of its removal,
 * which ends with that of the node: until then /proc/zoneinfo has its zones.
 */
static int settled(const char *node, int have, int wanted)
{
	if (!wanted)
		return have < 0;
	return have == wanted && count(node, 1) == wanted;
}

static int give_up(const char *node, int have, int wanted)
{
	fprintf(stderr, "bmmplug: nothing changes for %lu s: node %s ",
		PATIENCE / 1000000000, node);
	if (have == wanted && wanted)
		fprintf(stderr, "has blocks that are not online\n");
	else if (have == wanted)
		fprintf(stderr, "stays, although it has no block left\n");
	else
		fprintf(stderr, "has %d blocks, not %d\n", have < 0 ? 0 : have,
			wanted);
	return 1;
}

int timed_wait(const char *file, const char *text, const char *node, int blocks)
{
	int fd = open(file, O_WRONLY), have, before = -1;
	uint64_t start = now(), changed = start;

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		err(1, "%s", file);
	while (!settled(node, have = count(node, 0), blocks)) {
		if (have != before)
			changed = now();
		if (now() - changed > PATIENCE)
			return give_up(node, have, blocks);
		before = have;
		usleep(1000);
	}
	printf("%lu\n", now() - start);
	return 0;
}
