// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "memmap": ways to write the struct pages of a device: models of
 * the kernel's and of published methods, and the core.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/*
 * A model of struct page on x86-64 with a virtual memmap, limited to what the
 * initialisation of device memory writes: same size, offsets and store widths.
 */
struct links {
	struct links *next, *prev;
};

struct pagemap {
	uint64_t pad[13];
	uint32_t type;
};

struct model_page {
	uint64_t flags;
	union {
		struct links lru;
		struct {
			struct pagemap *pgmap;
			void *zone_device_data;
		};
	};
	void *mapping;
	uint64_t index;
	uint64_t private;
	int32_t mapcount;
	int32_t refcount;
	uint64_t memcg_data;
} __attribute__((__aligned__(16)));

_Static_assert(sizeof(struct model_page) == 64, "struct page has 64 bytes");

#define PAGE_NODE_SHIFT 54
#define PAGE_ZONE_SHIFT 51
#define PAGE_CPUPID	0x7ffffc0000000ULL /* "no CPU and task yet" */
#define PAGE_RESERVED	13		   /* bit number */

#define ZONE_DEVICE_NR 4ULL

enum pagemap_type {
	TYPE_PRIVATE = 1,
	TYPE_COHERENT,
	TYPE_FS_DAX
};

#define FIRST_PFN 0x100000ULL /* the device lies at 4 GiB */
#define barrier() __asm__ volatile("" ::: "memory")

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
static struct pagemap model_pagemap = { .type = TYPE_FS_DAX };

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
	int i;

#pragma GCC unroll 8
	for (i = 7; i >= 0; i--)
		word[i] = 0;
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
static void rebuild_page(void *page)
{
	init_device_page(page, 0, &model_pagemap);
}

static void rebuild_run(void *base, const void *src, size_t len)
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

/*
 * Models of the published methods: one template page is built the slow way;
 * for each page, what depends on its PFN is refreshed in the template, and
 * the template is copied ("mm: speed up ZONE_DEVICE memmap initialization",
 * v4, 2026). The copy is inline, by words, as the compiler does it without
 * vector registers; the streaming one copies the first page of a pageblock
 * ordinarily, because its flags are read back at once.
 */
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

/* How one page gets the template's words. */
typedef void put_fn(struct model_page *page, const struct model_page *template,
		    uint64_t pfn);

static inline void copy_page(struct model_page *page,
			     const struct model_page *template, uint64_t pfn)
{
	const bmm_word *from = (const bmm_word *)template;
	bmm_word *to = (bmm_word *)page;
	int i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		to[i] = from[i];
	barrier();
}

static inline __attribute__((__always_inline__)) void
template_run(void *base, size_t len, put_fn *put)
{
	uint64_t mask = section_mask, pfn = FIRST_PFN;
	struct model_page template, *page = base;
	struct model_page *end = page + len / sizeof(*page);

	rebuild_page(&template);
	for (; page < end; page++, pfn++) {
		refresh(&template, pfn, mask);
		put(page, &template, pfn);
	}
}

static void template_copy_run(void *base, const void *src, size_t len)
{
	template_run(base, len, copy_page);
}

#ifdef __x86_64__
static inline void stream_words(struct model_page *page,
				const struct model_page *template)
{
	const bmm_word *from = (const bmm_word *)template;
	bmm_word *to = (bmm_word *)page;
	int i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		__asm__ volatile("movntiq %1, %0" : "=m"(to[i]) : "r"(from[i]));
	barrier();
}

static inline void stream_page(struct model_page *page,
			       const struct model_page *template, uint64_t pfn)
{
	if (pfn % PAGEBLOCK_PAGES)
		stream_words(page, template);
	else
		copy_page(page, template, pfn);
}

static void template_movnti_run(void *base, const void *src, size_t len)
{
	template_run(base, len, stream_page);
	__asm__ volatile("sfence" ::: "memory");
}
#endif

#define BLOCK_PAGES 64U

/* The struct page that all pages of the device have. */
const struct bmm_image *pages_image(void)
{
	static struct bmm_image image;
	struct model_page page;

	if (image.size)
		return &image;
	rebuild_page(&page);
	bmm_image_init(&image, &page, NULL, sizeof(page));
	return &image;
}

/*
 * Compares every byte of struct pages. The reference comes from the core's
 * generic backend.
 */
bool pages_right(const void *base, size_t bytes)
{
	struct model_page block[BLOCK_PAGES];
	const char *p = base;
	size_t now;

	bmm_generic.stamp(block, pages_image(), BLOCK_PAGES);
	for (; bytes; bytes -= now, p += now) {
		now = bytes < sizeof(block) ? bytes : sizeof(block);
		if (memcmp(p, block, now))
			return false;
	}
	return true;
}

/* The base is listed twice: the difference between the two is noise. */
static const struct variant peers[] = {
	{ .name = "rebuild", .method = rebuild_run },
	{ .name = "rebuild-again", .method = rebuild_run },
	{ .name = "template-copy", .method = template_copy_run },
#ifdef __x86_64__
	{ .name = "template-movnti", .method = template_movnti_run },
#endif
};

static size_t pages(const struct options *options)
{
	return (size_t)(options->size / DEVICE_PAGE);
}

static void init(struct bench *b)
{
	struct variants *list = &b->variants;
	struct variant job = { .scenario = "memmap-stamp",
			       .op = BMM_STAMP,
			       .times = 1 };

	job.bytes = pages(&b->options) * sizeof(struct model_page);
	job.extent = job.bytes;
	job.len = SECTION_PAGES * sizeof(struct model_page);
	if (job.len > job.bytes)
		job.len = job.bytes;
	variants_add_peers(list, &job, peers, sizeof(peers) / sizeof(*peers));
	variants_add_ours(list, &job, BMM_STAMP, "bulkmm");
	variants_add_limits(list, &job);
	variants_add_threads(list, &job, BMM_STAMP, "bulkmm");
}

static void describe(const struct bench *b)
{
	printf("\"pages\": %zu, \"backend\": \"%s\"", pages(&b->options),
	       options_backend(&b->options, BMM_STAMP));
}

const struct subject memmap_subject = {
	.name = "memmap",
	.record = sizeof(struct model_page),
	.ops = 1U << BMM_STAMP,
	.init = init,
	.describe = describe,
};
