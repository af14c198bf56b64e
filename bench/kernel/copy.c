// SPDX-License-Identifier: GPL-2.0-only
/*
 * copy: copy_user_large_folio() for an address at the start, in the middle or
 * at the end of huge pages; and folio_mc_copy(), by which pages migrate and
 * which the module leaves alone.
 */
#include <stdio.h>
#include <string.h>

#include "native.h"

#define START	 0x100000ULL /* PFN of the first folio that is written */
#define DIRTY	 0x5a
#define FAR	 ((size_t)1 << 30) /* what folios of any size are aligned to */
#define ORDER_2M 9

/* 6.1 has a fifth argument, which others ignore, and no result. */
typedef int copy_fn(void *dst, void *src, uint64_t hint, void *vma,
		    unsigned int pages);
typedef int migrate_fn(void *dst, void *src);

enum hint {
	FIRST,
	MIDDLE,
	LAST,
	MIGRATE, /* folio_mc_copy() is told none */
};

static const struct mode modes[] = { { "on", -1, NULL },
				     { "cached", -1, NULL },
				     { "streaming", -1, NULL },
				     { NULL, -1, NULL } };
static const struct mode no_modes[] = { { NULL, -1, NULL } };

/**
 * struct work - one scenario
 * @name:  its name
 * @order: order of the folios
 * @hint:  the page of each folio that is about to be used
 * @use:   how each folio is used right after; part of the time
 * @extra: runs only if named, or if all rows are asked for
 */
static const struct work {
	const char *name;
	unsigned int order;
	enum hint hint;
	enum use use;
	bool extra;
} works[] = {
	{ "copy-2m", 9, FIRST, USE_NONE, false },
	{ "copy-2m-middle", 9, MIDDLE, USE_NONE, false },
	{ "copy-2m-last", 9, LAST, USE_NONE, false },
	{ "copy-2m-then-read", 9, FIRST, USE_READ, true },
	{ "copy-2m-then-write", 9, FIRST, USE_WRITE, true },
	{ "copy-2m-then-random", 9, FIRST, USE_RANDOM, true },
	{ "copy-1g", 18, FIRST, USE_NONE, true },
	{ "copy-64k", 4, FIRST, USE_NONE, true },
	{ "copy-64k-middle", 4, MIDDLE, USE_NONE, true },
	{ "copy-64k-last", 4, LAST, USE_NONE, true },
	{ "migrate-2m", 9, MIGRATE, USE_NONE, false },
	{ "migrate-64k", 4, MIGRATE, USE_NONE, true },
};

#define WORKS_NR (sizeof(works) / sizeof(works[0]))

/*
 * Further apart by this much, as folios of a kernel are by any amount: at a
 * distance with no bit below 1 GiB set, string moves take twice as long (Zen
 * 4). Folios of 1 GiB have no choice.
 */
#define SKEW (37 * HUGE_SIZE)

/* Destination and source have a page on each side. */
static char *dst, *src;
static char *dst_pages, *src_pages;
static size_t apart;	 /* at least */
static size_t page_size; /* of a struct page */
static PER_KERNEL copy_fn *copy;
static PER_KERNEL migrate_fn *migrate;
static PER_KERNEL bool silent; /* it has no result */
static uint64_t src_checksum;  /* checksum of the source */
static int returned, wanted;   /* by the last call; by the kernel's own */

static void copy_list(struct scenario *s, unsigned int kind, size_t bytes)
{
	const struct work *work = &works[kind];

	snprintf(s->name, sizeof(s->name), "%s", work->name);
	s->kind = kind;
	s->order = work->order;
	s->pages = bytes / PAGE;
	s->bytes = bytes;
	s->repeat = 1;
	s->modes = work->hint == MIGRATE ? no_modes : modes;
	s->extra = work->extra;
	s->unlimited = work->use;
	s->overwritten = work->use == USE_WRITE;
}

static void fill(uint64_t seed, size_t bytes)
{
	uint64_t *word = (uint64_t *)src, *end = (uint64_t *)(src + bytes);

	while (word < end)
		*word++ = order_random(&seed);
	src_checksum = checksum(src, bytes);
}

static unsigned int copy_setup(struct scenario *list, uint64_t size)
{
	unsigned int kind, nr = 0;
	size_t whole = size / HUGE_SIZE * HUGE_SIZE, bytes;
	size_t total;

	apart = (whole + GUARD + FAR) / FAR * FAR;
	total = apart + SKEW + whole;

	migrate = (migrate_fn *)symbol_or_null("folio_mc_copy", 'k');
	for (kind = 0; kind < WORKS_NR; kind++) {
		if (works[kind].hint == MIGRATE && !migrate)
			continue;
		bytes = whole & -(PAGE << works[kind].order);
		if (bytes)
			copy_list(&list[nr++], kind, bytes);
	}
	page_size = SIZE("page");
	copy = (copy_fn *)symbol_or_null("copy_user_large_folio", 'k');
	silent = !copy;
	if (silent)
		copy = (copy_fn *)symbol("copy_user_huge_page");
	state_sections(START, total / PAGE, true);
	dst_pages = state_pages(START, total / PAGE);
	dst = map_memory(HUGE_SIZE + total + GUARD) + HUGE_SIZE;
	AT(uint64_t, symbol("page_offset_base"), 0) = (uint64_t)dst -
						      START * PAGE;
	return nr;
}

static void place_source(unsigned int order)
{
	size_t distance = apart + (order > ORDER_2M ? 0 : SKEW);

	src = dst + distance;
	src_pages = dst_pages + distance / PAGE * page_size;
}

static void copy_enter(const struct scenario *s)
{
	place_source(s->order);
	state_folios(dst_pages, s->pages, s->order);
	state_folios(src_pages, s->pages, s->order);
	memset(src - GUARD, DIRTY, GUARD);
	memset(src + s->pages * PAGE, DIRTY, GUARD);
	fill(1, s->bytes);
}

static void copy_reset(const struct scenario *s)
{
	memset(dst - GUARD, DIRTY, s->bytes + 2 * GUARD);
	evict(dst, s->bytes);
	evict(src, s->bytes);
}

/* The page that is about to be used, of a folio at page @at, in pages. */
static uint64_t hint_of(const struct scenario *s, uint64_t at)
{
	uint64_t unit = 1ULL << s->order;

	switch (works[s->kind].hint) {
	case MIDDLE:
		return at + unit / 2;
	case LAST:
		return at + unit - 1;
	default:
		return at;
	}
}

static int copy_one(const struct scenario *s, char *to, char *from,
		    uint64_t hint)
{
	int err = copy(to, from, hint, NULL, 1U << s->order);

	return silent ? 0 : err;
}

static void copy_folio(const struct scenario *s, const struct variant *variant,
		       uint64_t at)
{
	size_t bytes = PAGE << s->order;
	char *to = dst_pages + at * page_size;
	char *from = src_pages + at * page_size;

	if (variant)
		limit_write(variant->limit, BMM_COPY_STREAMING, dst + at * PAGE,
			    src + at * PAGE, bytes);
	else if (works[s->kind].hint == MIGRATE)
		returned = migrate(to, from);
	else
		returned = copy_one(s, to, from, hint_of(s, at) * PAGE);
}

static void copy_all(const struct scenario *s, const struct variant *variant)
{
	uint64_t at;

	for (at = 0; at < s->pages; at += 1ULL << s->order) {
		copy_folio(s, variant, at);
		use_extent(works[s->kind].use, dst + at * PAGE,
			   PAGE << s->order);
	}
}

static void copy_keep(const struct scenario *s)
{
	wanted = returned;
}

/*
 * The destination is a copy, and the source as it was; nothing around either
 * was touched.
 */
static bool copy_right(const struct scenario *s)
{
	return returned == wanted && !memcmp(dst, src, s->bytes) &&
	       checksum(src, s->bytes) == src_checksum &&
	       bytes_are(dst - GUARD, GUARD, DIRTY) &&
	       bytes_are(dst + s->bytes, GUARD, DIRTY) &&
	       bytes_are(src - GUARD, GUARD, DIRTY) &&
	       bytes_are(src + s->bytes, GUARD, DIRTY);
}

static char *copy_output(const struct scenario *s)
{
	return dst + s->bytes / 2;
}

const struct subject copy_subject = {
	.name = "copy",
	.path = "bmm_copy_path",
	.op = BMM_COPY_STREAMING,
	.modes = modes,
	.setup = copy_setup,
	.enter = copy_enter,
	.reset = copy_reset,
	.call = copy_all,
	.keep = copy_keep,
	.right = copy_right,
	.output = copy_output,
};
