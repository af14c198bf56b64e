/* SPDX-License-Identifier: GPL-2.0-only */
/* The devices of the kernel's lib/test_hmm.c, and requests to them. */
#ifndef BMMHMM_H
#define BMMHMM_H

#include <stdint.h>

#define BYTES (2UL << 20) /* of an area: one huge page */
#define PAGES (BYTES / 4096)
#define WORDS (BYTES / 8)

/* The numbers of the driver's requests. */
enum request {
	READ,
	WRITE,
	TO_DEVICE,
	TO_SYSTEM,
	SNAPSHOT,
	RELEASE = 7,
};

/* What a device sees of a page. */
enum seen {
	NOWHERE,
	HERE = 0x02, /* and writable */
	HUGE = 0x04,
	ON_DEVICE = 0x20,
};

/* Returns 0 if both devices exist. */
int devices_open(void);

/* Data sent to a device or received from it: as large as an area. */
extern uint64_t *data;

/*
 * Sends device @nr a request for @pages at @at, with their content at @with.
 * Returns 0 or a negative error.
 */
long ask_part(int nr, enum request what, void *at, uint64_t pages, void *with);

/* Likewise to the first device, for an area and all of the data. */
long ask(enum request what, void *at);

/* How many pages of an area device @nr sees otherwise; or an error. */
long not_seen_as(int nr, void *at, unsigned char wanted);

#endif
