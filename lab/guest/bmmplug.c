// SPDX-License-Identifier: GPL-2.0-only
/* Memory of a node that is plugged and unplugged. */
#include <glob.h>

#include "guest.h"
#include "measure.h"

#define PATIENCE 120000000000UL /* ns: two minutes */
#define MANY	 65536		/* blocks: 8 TiB of the smallest */

/* The directories of a node's blocks; returns how many. */
static int blocks_of(const char *node, glob_t *found)
{
	char all[64];

	snprintf(all, sizeof(all),
		 "/sys/devices/system/node/node%s/memory[0-9]*", node);
	return glob(all, GLOB_NOSORT, NULL, found) ? 0 : (int)found->gl_pathc;
}

/* Sets a block's state; returns 0 or the errno of the kernel's refusal. */
static int set_state(const char *block, const char *state)
{
	char file[272];
	int fd, refused = 0;

	snprintf(file, sizeof(file), "%s/state", block);
	fd = opened(file, O_WRONLY);
	if (write(fd, state, strlen(state)) < 0)
		refused = errno;
	close(fd);
	return refused;
}

static void offline_block(const char *block)
{
	int refused, tries = 500;

	/* a page may be in use for the moment */
	while ((refused = set_state(block, "offline")) == EBUSY && tries--)
		usleep(10000);
	errno = refused;
	if (refused && refused != EINVAL) /* EINVAL: it is offline already */
		err(1, "%s", block);
}

/*
 * NODE: take every block of it offline, in the order of the directory, as
 * daxctl does; prints how many nanoseconds that took.
 */
static void offline(char **word)
{
	uint64_t start;
	glob_t found;
	int many = blocks_of(word[0], &found);

	if (!many)
		errx(1, "node %s has no memory", word[0]);
	start = now();
	for (int i = 0; i < many; i++)
		offline_block(found.gl_pathv[i]);
	printf("%lu\n", now() - start);
}

static int is_online(const char *block)
{
	char file[272], state[8] = "";
	int fd;

	snprintf(file, sizeof(file), "%s/state", block);
	fd = open(file, O_RDONLY);
	if (fd < 0)
		return 0; /* it was removed meanwhile */
	if (read(fd, state, sizeof(state) - 1) < 0)
		state[0] = 0;
	close(fd);
	return !strcmp(state, "online\n");
}

/*
 * Is the last operation over? A block reads "online" once online_pages() has
 * returned. The last block of a node is unlinked in the middle of its removal,
 * which ends with that of the node: until then /proc/zoneinfo has its zones.
 */
static int settled(const char *node, int wanted, int *have)
{
	char directory[64];
	int online = 0;
	glob_t found;

	snprintf(directory, sizeof(directory),
		 "/sys/devices/system/node/node%s", node);
	*have = blocks_of(node, &found);
	for (int i = 0; *have == wanted && i < wanted; i++)
		online += is_online(found.gl_pathv[i]);
	if (*have)
		globfree(&found);
	return wanted ? online == wanted : access(directory, F_OK);
}

/*
 * FILE TEXT NODE BLOCKS: write a text to a file and wait until the node has so
 * many blocks, all of them online (0: until the node is gone); prints the
 * nanoseconds.
 */
static void timed_wait(char **word)
{
	int fd = opened(word[0], O_WRONLY), blocks = atoi(word[3]);
	int have, before = -1;
	uint64_t start = now(), changed = start;

	if (dprintf(fd, "%s\n", word[1]) < 0)
		err(1, "%s", word[0]);
	while (!settled(word[2], blocks, &have)) {
		if (have != before)
			changed = now();
		if (now() - changed > PATIENCE)
			errx(1,
			     "node %s has had %d blocks for %lu s, not %d that "
			     "are online (0: no node)",
			     word[2], have, PATIENCE / 1000000000, blocks);
		before = have;
		usleep(1000);
	}
	printf("%lu\n", now() - start);
}

static uint64_t block_size(void)
{
	FILE *file = fopen("/sys/devices/system/memory/block_size_bytes", "r");
	uint64_t size;

	if (!file || fscanf(file, "%lx", &size) != 1)
		err(1, "block size");
	fclose(file);
	return size;
}

/* A block of another node is an error. */
static void take_turns(const char *held, const char *node, const char *online)
{
	char block[64];

	for (int i = 0; i < MANY; i++) {
		snprintf(block, sizeof(block),
			 "/sys/devices/system/node/node%s/memory%d", node, i);
		if (held[i] && !set_state(block, "offline") &&
		    set_state(block, online))
			errx(1, "block %d does not come back", i);
	}
}

/*
 * NODE MIB ONLINE: allocate so much of its memory, fill it with distinct words,
 * take each block that holds them offline, if the kernel does so, and online
 * again (as ONLINE), and check each word. Prints how many pages have moved; it
 * is an error if one was not on the node at first.
 */
static void use(char **word)
{
	uint64_t node = number(word[0]), bytes = number(word[1]) << 20;
	uint64_t pages = bytes / SMALL, size = block_size(), moved = 0, bad;
	uint64_t *was = mapped(pages * sizeof(*was), MAP_PRIVATE, -1);
	char *base = mapped(bytes, MAP_PRIVATE, -1);
	static char held[MANY];

	bound(base, bytes, MPOL_BIND, 1UL << node);
	store((uint64_t *)base, bytes / 8, node, 0);
	/* from here on it may migrate anywhere */
	bound(base, bytes, MPOL_DEFAULT, 0);
	for (uint64_t i = 0; i < pages; i++) {
		was[i] = pfn_of(base + i * SMALL);
		if (was[i] * SMALL / size >= MANY)
			errx(1, "block %lu", was[i] * SMALL / size);
		held[was[i] * SMALL / size] = 1;
	}
	take_turns(held, word[0], word[2]);
	bad = differing((uint64_t *)base, bytes / 8, node, 0);
	if (bad)
		errx(1, "%lu words differ", bad);
	for (uint64_t i = 0; i < pages; i++)
		moved += pfn_of(base + i * SMALL) != was[i];
	printf("bytes=%lu moved=%lu\n", bytes, moved);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "use NODE MIB ONLINE", 3, 3, use },
		{ "offline NODE", 1, 1, offline },
		{ "wait FILE TEXT NODE BLOCKS", 4, 4, timed_wait },
	};

	return RUN_ONE(commands, argc, argv);
}
