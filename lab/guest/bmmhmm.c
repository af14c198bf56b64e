// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drives a device of the kernel's lib/test_hmm.c, by the interface of its
 * test_hmm_uapi.h: memory migrates to a device that no CPU can access and back,
 * and every word is checked. One line per case: how much was wrong (words, or
 * pages that are not where they should be; below 0, an errno), and what was done.
 */

#include "guest.h"

#define BYTES (2UL << 20) /* of an area: one huge page */
#define PAGES (BYTES / 4096)
#define WORDS (BYTES / 8)
#define TRIES 10

/* The numbers of the driver's requests. */
enum request {
	READ,
	WRITE,
	TO_DEVICE,
	SNAPSHOT = 4,
	RELEASE = 7,
};

/* What the device sees of a page. */
enum {
	HERE = 0x02, /* and writable */
	HUGE = 0x04,
	ON_DEVICE = 0x20,
};

struct asked {
	uint64_t addr;
	uint64_t data;
	uint64_t pages;
	uint64_t done;
	uint64_t faults;
};

static int device;
static uint64_t *data; /* sent to the device or received: as large as an area */
static uint64_t seed;
static int broken; /* the planted word counts as wrong */

static long ask_part(enum request what, void *at, uint64_t pages, void *with)
{
	struct asked asked = {
		.addr = (uintptr_t)at,
		.data = (uintptr_t)with,
		.pages = pages,
	};

	if (ioctl(device, _IOWR('H', what, struct asked), &asked))
		return -errno;
	return asked.done == pages || what == RELEASE ? 0 : -ERANGE;
}

/*
 * A page with a transient reference (of a CPU's LRU batch, for example) stays
 * in place, and the driver then finds no page to read: the caller must retry.
 */
static long ask(enum request what, void *at)
{
	long err;
	int tries = TRIES;

	do
		err = ask_part(what, at, PAGES, data);
	while (err == -ENOENT && what == TO_DEVICE && --tries);
	return err;
}

/* How many pages of an area the device sees otherwise; or an error. */
static long not_seen_as(void *at, unsigned char wanted)
{
	unsigned char seen[PAGES];
	long wrong = 0, err = ask_part(SNAPSHOT, at, PAGES, seen);

	for (uint64_t i = 0; !err && i < PAGES; i++)
		wrong += seen[i] != wanted;
	return err ?: wrong;
}

static long differs(const uint64_t *in, uint64_t pass)
{
	return differing(in, WORDS, pass, 0);
}

/* Migrates a filled area to the device. */
static long away(uint64_t *at, unsigned char kind)
{
	long err;

	store(at, WORDS, seed, 0);
	memset(data, 0, BYTES);
	err = ask(TO_DEVICE, at);
	return err ?: differs(data, seed) ?: not_seen_as(at, kind);
}

/* The CPU reads all of it, which brings it back to ordinary memory. */
static long back(uint64_t *at)
{
	return differs(at, seed) ?: not_seen_as(at, HERE);
}

static long there_and_back(uint64_t *at)
{
	return away(at, ON_DEVICE | HERE) ?: back(at);
}

/* The device's own store and loads, while the CPU has no page. */
static long planted_word(uint64_t *at)
{
	uint64_t *copy = data + WORDS / 2;
	long err = away(at, ON_DEVICE | HERE);

	copy[1] ^= 1;
	err = err ?: ask_part(WRITE, at + WORDS / 2, 1, copy);
	memset(data, 0, BYTES);
	err = err ?: ask(READ, at);
	err = err ?: differs(data, seed) != 1;
	/* the CPU sees it, too */
	return err ?: differs(at, seed) - !broken;
}

static long huge_page(uint64_t *at)
{
	return away(at, ON_DEVICE | HERE | HUGE) ?: differs(at, seed);
}

/* The device evicts all its memory, and allocates some again. */
static long device_gives_up(uint64_t *at)
{
	long err = away(at, ON_DEVICE | HERE);

	err = err ?: ask(RELEASE, at);
	return err ?: back(at) ?: there_and_back(at);
}

static const struct {
	const char *name;
	long (*run)(uint64_t *at);
	int advice;
} cases[] = {
	{ "there and back", there_and_back, MADV_NOHUGEPAGE },
	{ "a planted word is seen", planted_word, MADV_NOHUGEPAGE },
	{ "a huge page", huge_page, MADV_HUGEPAGE },
	{ "the device gives up its memory", device_gives_up, MADV_NOHUGEPAGE },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "usage: bmmhmm SEED [broken]");
	seed = number(argv[1]);
	broken = argc > 2;
	device = opened("/dev/hmm_dmirror0", O_RDWR);
	data = advised(BYTES, BYTES, MADV_NOHUGEPAGE);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		void *at = advised(BYTES, BYTES, cases[i].advice);

		printf("%ld %s\n", cases[i].run(at), cases[i].name);
	}
	return 0;
}
