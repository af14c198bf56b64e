// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drives the two devices of the kernel's lib/test_hmm.c: memory migrates to a
 * device that no CPU can access and back, by every way there is, and every word
 * is checked. One line per case: how much was wrong (words, or pages that are
 * not where they should be; below 0, an errno), and what was done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bmmhmm.h"
#include "words.h"

static uint64_t seed;
static int broken; /* the planted word stays */

static long differs(const uint64_t *in, uint64_t pass)
{
	return differing(in, WORDS, pass, 0);
}

/* Migrates a filled area to the first device. */
static long away(uint64_t *at, unsigned char kind)
{
	long err;

	store(at, WORDS, seed, 0);
	memset(data, 0, BYTES);
	err = ask(TO_DEVICE, at);
	if (!err)
		err = differs(data, seed);
	return err ?: not_seen_as(0, at, kind);
}

static long small_away(uint64_t *at)
{
	return away(at, ON_DEVICE | HERE);
}

/* The CPU reads all of it, which brings it back to ordinary memory. */
static long back(uint64_t *at)
{
	return differs(at, seed) ?: not_seen_as(0, at, HERE);
}

static long device_reads(uint64_t *at)
{
	long err;

	store(at, WORDS, seed, 0);
	err = ask(READ, at);
	return err ?: differs(data, seed);
}

/* Nothing was mapped: the device faults the pages in. */
static long device_writes(uint64_t *at)
{
	long err;

	store(data, WORDS, seed, 0);
	err = ask(WRITE, at);
	return err ?: back(at);
}

static long there_and_back(uint64_t *at)
{
	long err = small_away(at);

	/* the other device, which does not own them */
	err = err ?: not_seen_as(1, at, NOWHERE);
	return err ?: back(at);
}

/* The device's own stores and loads, while the CPU has no page. */
static long device_works(uint64_t *at)
{
	long err = small_away(at);

	store(data, WORDS, seed + 1, 0);
	err = err ?: ask(WRITE, at);
	memset(data, 0, BYTES);
	err = err ?: ask(READ, at);
	err = err ?: differs(data, seed + 1);
	err = err ?: not_seen_as(0, at, ON_DEVICE | HERE);
	return err ?: differs(at, seed + 1);
}

static long back_by_request(uint64_t *at)
{
	long err = small_away(at);

	err = err ?: ask(TO_SYSTEM, at);
	err = err ?: not_seen_as(0, at, HERE);
	return err ?: differs(at, seed);
}

static long other_device_reads(uint64_t *at)
{
	long err = small_away(at);

	memset(data, 0, BYTES);
	err = err ?: ask_part(1, READ, at, PAGES, data);
	err = err ?: differs(data, seed);
	return err ?: back(at);
}

/* A touch brings back only the page that was touched. */
static long one_page_back(uint64_t *at)
{
	long left, err = small_away(at);

	err = err ?: at[WORDS / 2] != word_at(seed, WORDS / 2);
	left = not_seen_as(0, at, ON_DEVICE | HERE);
	err = err ?: (left < 0 ? left : left != 1);
	return err ?: back(at);
}

/* A whole area without a page migrates as one huge page, whatever advice. */
static long never_written(uint64_t *at)
{
	long wrong = 0, err;

	memset(data, -1, BYTES);
	err = ask(TO_DEVICE, at);
	err = err ?: not_seen_as(0, at, ON_DEVICE | HERE | HUGE);
	for (uint64_t i = 0; i < WORDS; i++)
		wrong += data[i] || at[i];
	return err ?: wrong;
}

/* Parent and child share what is on the device, until one of them stores. */
static long child_stores(uint64_t *at)
{
	long err = small_away(at);
	int status;
	pid_t child = fork();

	if (!child) {
		status = differs(at, seed) != 0;
		store(at, WORDS, seed + 1, 0);
		_exit(status || differs(at, seed + 1));
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -errno;
	err = err ?: status != 0;
	return err ?: differs(at, seed);
}

static long planted_word(uint64_t *at)
{
	uint64_t *page = at + WORDS / 2, *copy = data + WORDS / 2;
	long err = small_away(at);

	copy[1] ^= 1;
	err = err ?: ask_part(0, WRITE, page, 1, copy);
	memset(data, 0, BYTES);
	err = err ?: ask(READ, at);
	err = err ?: differs(data, seed) != 1;
	err = err ?: copy[1] != (word_at(seed, WORDS / 2 + 1) ^ 1);
	if (broken)
		return err ?: back(at);
	copy[1] ^= 1;
	err = err ?: ask_part(0, WRITE, page, 1, copy);
	return err ?: back(at);
}

static long huge_page(uint64_t *at)
{
	long err = away(at, ON_DEVICE | HERE | HUGE);

	return err ?: differs(at, seed);
}

/* The device evicts all its memory, and allocates some again. */
static long device_gives_up(uint64_t *at)
{
	long err = small_away(at);

	err = err ?: ask(RELEASE, at);
	err = err ?: back(at);
	err = err ?: small_away(at);
	return err ?: back(at);
}

static const struct {
	const char *name;
	long (*run)(uint64_t *at);
	int advice;
} cases[] = {
	{ "the device reads", device_reads, MADV_NOHUGEPAGE },
	{ "the device writes", device_writes, MADV_NOHUGEPAGE },
	{ "there and back", there_and_back, MADV_NOHUGEPAGE },
	{ "the device works on its own", device_works, MADV_NOHUGEPAGE },
	{ "back by request", back_by_request, MADV_NOHUGEPAGE },
	{ "another device reads", other_device_reads, MADV_NOHUGEPAGE },
	{ "one page back", one_page_back, MADV_NOHUGEPAGE },
	{ "never written", never_written, MADV_NOHUGEPAGE },
	{ "a child stores", child_stores, MADV_NOHUGEPAGE },
	{ "a planted word is seen", planted_word, MADV_NOHUGEPAGE },
	{ "a huge page", huge_page, MADV_HUGEPAGE },
	{ "the device gives up its memory", device_gives_up, MADV_NOHUGEPAGE },
};

/* An area that could be one huge page, untouched; never unmapped. */
static void *area(int advice)
{
	char *at = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	at += -(uintptr_t)at % BYTES;
	return madvise(at, BYTES, advice) ? NULL : at;
}

int main(int argc, char **argv)
{
	broken = argc == 3 && !strcmp(argv[2], "broken");
	if (argc != 2 && !broken) {
		fprintf(stderr, "usage: bmmhmm SEED [broken]\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0);
	data = area(MADV_NOHUGEPAGE);
	if (!data || devices_open()) {
		perror("bmmhmm: the devices of test_hmm");
		return 1;
	}
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		void *at = area(cases[i].advice);

		printf("%ld %s\n", at ? cases[i].run(at) : -errno,
		       cases[i].name);
	}
	return 0;
}
