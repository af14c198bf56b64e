// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory tags of arm64 (MTE): four bits for every 16 bytes, stored beside the
 * data and not cleared with it. In a new page of a process none may be set.
 * Elsewhere there are no tags.
 */
#include <err.h>

#include "bmmfault.h"

#define TAG 5UL /* what memory is tagged with */

#ifdef __aarch64__
#define PROT	  0x20 /* PROT_MTE */
#define TAG_SHIFT 56

/* Pointers keep tag 0, and checking is off unless a process asks for it. */
static void set(char *at, uint64_t tag)
{
	asm volatile(".arch_extension memtag\n\tstg %0, [%1]"
		     :
		     : "r"(tag << TAG_SHIFT), "r"(at)
		     : "memory");
}

static uint64_t get(const char *at)
{
	uint64_t got = 0;

	asm volatile(".arch_extension memtag\n\tldg %0, [%1]"
		     : "+r"(got)
		     : "r"(at)
		     : "memory");
	return got >> TAG_SHIFT;
}
#else
#define PROT 0

static void set(char *at, uint64_t tag)
{
	(void)at, (void)tag;
}

static uint64_t get(const char *at)
{
	(void)at;
	return 0;
}
#endif

int tags_prot(const struct work *work)
{
	if (work->tagged && !PROT)
		errx(1, "this architecture has no memory tags");
	return work->tagged ? PROT : 0;
}

/* Like the pattern, tags are left in memory that is freed. */
void tag(const struct work *work, char *at, uint64_t bytes)
{
	if (work->tagged)
		for (uint64_t done = 0; done < bytes; done += GRANULE)
			set(at + done, TAG);
}

void prove_tags(const struct work *work, const char *in)
{
	if (!work->tagged)
		return;
	for (uint64_t at = 0; at < work->bytes; at += GRANULE)
		seen->tags_wrong += get(in + at) != 0;
	seen->tags += work->bytes / GRANULE;
}
