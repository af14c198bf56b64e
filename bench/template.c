// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Models of the published methods: one template page is built the slow way;
 * for each page, what depends on its PFN is refreshed in the template, and
 * the template is copied ("mm: speed up ZONE_DEVICE memmap initialization",
 * v4, 2026). The copy is inline, by words, as the compiler does it without
 * vector registers; the streaming one copies the first page of a pageblock
 * ordinarily, because its flags are read back at once.
 */
#include "bench.h"
#include "page.h"

#define PAGEBLOCK_PAGES 512U

#define SECTION_SHIFT 15 /* pages of a section */
/* Section bits in the flags: none where the memmap is virtual. */
static volatile uint64_t section_mask;

/*
 * Refreshes as a kernel with section bits in page->flags does: read, mask,
 * write. Without the barrier the compiler would see that nothing changes and
 * keep the template in registers, which is another method.
 */
static inline void refresh(struct model_page *template, uint64_t pfn,
			   uint64_t mask)
{
	template->flags = (template->flags & ~mask) |
			  ((pfn >> SECTION_SHIFT) & mask);
	barrier();
}

static inline void copy_words(struct model_page *page,
			      const struct model_page *template)
{
	const bmm_word *from = (const bmm_word *)template;
	bmm_word *to = (bmm_word *)page;

	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
	to[3] = from[3];
	to[4] = from[4];
	to[5] = from[5];
	to[6] = from[6];
	to[7] = from[7];
	barrier();
}

void template_copy_run(void *base, const void *src, size_t len)
{
	uint64_t mask = section_mask, pfn = FIRST_PFN;
	struct model_page template, *page = base;
	struct model_page *end = page + len / sizeof(*page);

	rebuild_page(&template);
	for (; page < end; page++, pfn++) {
		refresh(&template, pfn, mask);
		copy_words(page, &template);
	}
}

#ifdef __x86_64__
static inline void stream_word(bmm_word *to, const bmm_word *from)
{
	__asm__ volatile("movntiq %1, %0" : "=m"(*to) : "r"(*from));
}

static inline void stream_words(struct model_page *page,
				const struct model_page *template)
{
	const bmm_word *from = (const bmm_word *)template;
	bmm_word *to = (bmm_word *)page;

	stream_word(to, from);
	stream_word(to + 1, from + 1);
	stream_word(to + 2, from + 2);
	stream_word(to + 3, from + 3);
	stream_word(to + 4, from + 4);
	stream_word(to + 5, from + 5);
	stream_word(to + 6, from + 6);
	stream_word(to + 7, from + 7);
	barrier();
}

static inline void stream_page(struct model_page *page,
			       const struct model_page *template, uint64_t pfn)
{
	if (pfn % PAGEBLOCK_PAGES)
		stream_words(page, template);
	else
		copy_words(page, template);
}

void template_movnti_run(void *base, const void *src, size_t len)
{
	uint64_t mask = section_mask, pfn = FIRST_PFN;
	struct model_page template, *page = base;
	struct model_page *end = page + len / sizeof(*page);

	rebuild_page(&template);
	for (; page < end; page++, pfn++) {
		refresh(&template, pfn, mask);
		stream_page(page, &template, pfn);
	}
	__asm__ volatile("sfence" ::: "memory");
}
#endif
