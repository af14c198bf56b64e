// SPDX-License-Identifier: GPL-2.0-only
/* The driver's interface, from the kernel's lib/test_hmm_uapi.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "bmmhmm.h"

#define TRIES 10

struct command {
	uint64_t addr;
	uint64_t data;
	uint64_t pages;
	uint64_t done;
	uint64_t faults;
};

static int devices[2];
uint64_t *data;

int devices_open(void)
{
	devices[0] = open("/dev/hmm_dmirror0", O_RDWR);
	devices[1] = open("/dev/hmm_dmirror1", O_RDWR);
	return devices[0] < 0 || devices[1] < 0 ? -1 : 0;
}

long ask_part(int nr, enum request what, void *at, uint64_t pages, void *with)
{
	struct command command = {
		.addr = (uintptr_t)at,
		.data = (uintptr_t)with,
		.pages = pages,
	};

	if (ioctl(devices[nr], _IOWR('H', what, struct command), &command))
		return -errno;
	return command.done == pages || what == RELEASE ? 0 : -ERANGE;
}

/*
 * A page with a transient reference (of a CPU's LRU batch, for example) stays
 * in place, and the driver then finds no page to read: the caller must retry.
 */
long ask(enum request what, void *at)
{
	long err;
	int tries = TRIES;

	do
		err = ask_part(0, what, at, PAGES, data);
	while (err == -ENOENT && what == TO_DEVICE && --tries);
	return err;
}

long not_seen_as(int nr, void *at, unsigned char wanted)
{
	unsigned char seen[PAGES];
	long wrong = 0, err = ask_part(nr, SNAPSHOT, at, PAGES, seen);

	for (uint64_t i = 0; !err && i < PAGES; i++)
		wrong += seen[i] != wanted;
	return err ?: wrong;
}
