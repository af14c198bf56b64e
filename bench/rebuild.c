// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A model of the kernel's slow path: every struct page is built from scratch.
 *
 * Checked against the machine code of Debian's 6.12 kernel for x86-64, where
 * __init_zone_device_page() and __init_single_page() come down to one call per
 * page: the zeroing of words that are written later is optimised away, the
 * list head is written and then overwritten by the pagemap, the reserved bit is
 * set in memory, and the pagemap's type is read again for every page. The
 * ftrace patch site of the call is omitted.
 */
#include "bench.h"
#include "page.h"

struct pagemap model_pagemap = { .type = TYPE_FS_DAX };

#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

static inline void set_reserved(struct model_page *page)
{
#ifdef __x86_64__
	/* The kernel's __set_bit() is this instruction. */
	__asm__ volatile("btsq %1, %0"
			 : "+m"(page->flags)
			 : "i"(PAGE_RESERVED)
			 : "memory");
#else
	page->flags |= 1ULL << PAGE_RESERVED;
#endif
}

/* Word by word, as the kernel does: the compiler then omits most of these. */
static inline void zero_page(struct model_page *page)
{
	bmm_word *word = (bmm_word *)page;

	word[7] = 0;
	word[6] = 0;
	word[5] = 0;
	word[4] = 0;
	word[3] = 0;
	word[2] = 0;
	word[1] = 0;
	word[0] = 0;
}

static inline void init_single(struct model_page *page, uint64_t zone,
			       uint64_t node)
{
	zero_page(page);
	page->flags |= zone << PAGE_ZONE_SHIFT;
	page->flags |= node << PAGE_NODE_SHIFT;
	WRITE_ONCE(page->refcount, 1);
	WRITE_ONCE(page->mapcount, -1);
	page->flags |= PAGE_CPUPID;
	WRITE_ONCE(page->lru.next, &page->lru);
	WRITE_ONCE(page->lru.prev, &page->lru);
}

static __attribute__((__noinline__)) void
init_device_page(struct model_page *page, uint64_t node, struct pagemap *pgmap)
{
	init_single(page, ZONE_DEVICE_NR, node);
	set_reserved(page);
	page->pgmap = pgmap;
	page->zone_device_data = NULL;
	if (pgmap->type == TYPE_PRIVATE || pgmap->type == TYPE_COHERENT)
		WRITE_ONCE(page->refcount, 0);
}

/* One page built the slow way: what templates and images start from. */
void rebuild_page(void *page)
{
	init_device_page(page, 0, &model_pagemap);
}

void rebuild_run(void *base, const void *src, size_t len)
{
	uint64_t pfn = FIRST_PFN, node = 0;
	struct model_page *page = base, *end = page + len / sizeof(*page);
	struct pagemap *pgmap = &model_pagemap;

	/* Unknown at compile time. */
	__asm__ volatile("" : "+r"(node), "+r"(pgmap));
	for (; page < end; pfn++, page++) {
		init_device_page(page, node, pgmap);
		if (!(pfn % SECTION_PAGES))
			barrier(); /* where the kernel reschedules */
	}
}
