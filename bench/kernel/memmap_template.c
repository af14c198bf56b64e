// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers of memmap, for devices whose struct pages are all alike: models of the
 * published methods ("mm: speed up ZONE_DEVICE memmap initialization", v4,
 * 2026). A template is what the kernel's own code made of one page. For each
 * page, what depends on its PFN is refreshed in it, and it is copied by words,
 * as the compiler does without vector registers. MOVNTI omits the first page of
 * each pageblock, whose flags are read back at once.
 */
#include <string.h>

#include "memmap.h"

#define WORDS	      8
#define SECTION_SHIFT 15 /* pages of a section */
#define MOVABLE	      1	 /* MIGRATE_MOVABLE */
#define barrier()     __asm__ volatile("" ::: "memory")

typedef void pageblock_fn(char *page, int type, bool isolate);

static const char *const peers[] = { "template-copy", "template-movnti", NULL };

/* Section bits in the flags: none where the memmap is virtual. */
static volatile uint64_t section_mask;

/* The peers of devices of an order, or NULL. */
const char *const *memmap_peers(uint64_t order)
{
	return order || memmap_record != WORDS * 8 ? NULL : peers;
}

static inline void copy_page(uint64_t *to, const uint64_t *from)
{
	int i;

#pragma GCC unroll 8
	for (i = 0; i < WORDS; i++)
		((volatile uint64_t *)to)[i] = from[i];
}

static inline void stream_page(uint64_t *to, const uint64_t *from)
{
	int i;

#pragma GCC unroll 8
	for (i = 0; i < WORDS; i++)
		__asm__ volatile("movntiq %1, %0" : "=m"(to[i]) : "r"(from[i]));
}

/*
 * Without the barriers the compiler would see that nothing changes and keep the
 * template in registers, which is another method.
 */
static inline __attribute__((__always_inline__)) void
template_write(uint64_t *page, uint64_t pfn, uint64_t end, bool stream)
{
	pageblock_fn *pageblock = (pageblock_fn *)memmap_pageblock();
	uint64_t template[WORDS], mask = section_mask;

	memcpy(template, pages_image()->word, sizeof(template));
	for (; pfn < end; pfn++, page += WORDS) {
		template[0] = (template[0] & ~mask) |
			      (pfn >> SECTION_SHIFT & mask);
		barrier();
		if (stream && pfn % PAGES_2M)
			stream_page(page, template);
		else
			copy_page(page, template);
		if (!(pfn % PAGES_2M))
			pageblock((char *)page, MOVABLE, false);
	}
}

/* Does what peer number @peer does. */
void memmap_template(char *page, const struct scenario *s, unsigned int peer)
{
	uint64_t *at = (uint64_t *)page, end = s->from + s->pages;

	if (peer == 1)
		return template_write(at, s->from, end, false);
	template_write(at, s->from, end, true);
	bmm_drain();
}
