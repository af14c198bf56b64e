// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a node that is plugged and unplugged:
 *
 *	bmmplug use NODE MIB SEED FILLED GO
 *
 * allocates MIB of the node's memory, fills it with distinct words, lists the
 * memory blocks that hold them in the file FILLED (some more than once), waits
 * for the file GO and checks each word. Prints the number of bytes, and how
 * many pages have left the node; exits 1 if one was not on it at first, or a
 * word has changed.
 *
 *	bmmplug offline NODE
 *
 * takes every block of the node offline, in the order of the directory, as
 * daxctl does; prints how many nanoseconds that took.
 *
 *	bmmplug plug|unplug FILE DEVICE
 *
 * writes a device to a file of its driver, and prints how long that took.
 *
 *	bmmplug record
 *
 * begins a record of work; "plug" is counted in its first slot, "offline" and
 * "unplug" in its second.
 *
 *	bmmplug wait FILE TEXT NODE BLOCKS
 *
 * writes a text to a file and waits until the node has BLOCKS blocks, all of
 * them online (0: until the node is gone); prints the nanoseconds it took.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bmmplug.h"
#include "mark.h"
#include "measure.h"

/* Write to a driver's file, and count the work in one slot of a record. */
static int driver(const char *file, const char *device, int taken)
{
	uint64_t start = now();
	int fd = open(file, O_WRONLY);
	ssize_t done;

	if (fd < 0)
		err(1, "%s", file);
	stay();
	if (taken)
		bmm_mark(BMM_MARK_BEGIN(1));
	else
		bmm_mark(BMM_MARK_BEGIN(0));
	done = write(fd, device, strlen(device));
	if (taken)
		bmm_mark(BMM_MARK_END(1));
	else
		bmm_mark(BMM_MARK_END(0));
	if (done < 0)
		err(1, "%s", file);
	printf("%lu\n", now() - start);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "use"))
		return use(atoi(argv[2]), strtoull(argv[3], NULL, 0) << 20,
			   strtoull(argv[4], NULL, 0), argv[5], argv[6]);
	if (argc == 2 && !strcmp(argv[1], "record")) {
		bmm_mark(BMM_MARK_RECORD);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "plug"))
		return driver(argv[2], argv[3], 0);
	if (argc == 4 && !strcmp(argv[1], "unplug"))
		return driver(argv[2], argv[3], 1);
	if (argc == 3 && !strcmp(argv[1], "offline"))
		return offline(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "wait"))
		return timed_wait(argv[2], argv[3], argv[4], atoi(argv[5]));
	fprintf(stderr, "usage: bmmplug use NODE MIB SEED FILLED GO\n"
			"       bmmplug plug|unplug FILE DEVICE\n"
			"       bmmplug record\n"
			"       bmmplug offline NODE\n"
			"       bmmplug wait FILE TEXT NODE BLOCKS\n");
	return 2;
}
