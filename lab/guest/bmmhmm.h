/* SPDX-License-Identifier: GPL-2.0-only */
/* The devices of the kernel's lib/test_hmm.c, and what they are asked to do. */
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
	HERE = 0x02, /* and may write it */
	HUGE = 0x04,
	ON_DEVICE = 0x20,
};

/* Returns 0 if both devices are there. */
int devices_open(void);

/* What went to a device, or came from it: an area. */
extern uint64_t *data;

/*
 * Has device @nr do something with @pages at @at, their content at @with.
 * Returns 0 or a negative error.
 */
long ask_part(int nr, enum request what, void *at, uint64_t pages, void *with);

/* Likewise the first device, with an area and all of the data. */
long ask(enum request what, void *at);

/* How many pages of an area device @nr does not see so; or an error. */
long not_seen_as(int nr, void *at, unsigned char wanted);

#endif
