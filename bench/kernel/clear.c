// SPDX-License-Identifier: GPL-2.0-only
/*
 * clear: folio_zero_user(), or 6.1's clear_huge_page(), on huge pages that a
 * fault touches or a system call prepares; cold, or just cleared before; and
 * then used at once.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "native.h"

#define START	    0x100000ULL /* PFN of the first folio */
#define DIRTY	    0x5a
#define ORDER_LEAST 9	  /* of huge pages in 6.1 */
#define TOUCH	    (-1L) /* no system call: an exception */
#define TIMES	    8	  /* clears of a folio in a row ("-again") */
#define RADIUS 2 /* pages on each side of a touch that the series clears last */
#define BATCH ((size_t)32 << 20) /* cleared between two chances to reschedule */

/* 6.1 has a third argument, which others ignore. */
typedef void zero_fn(void *folio, uint64_t hint, unsigned int pages);

/**
 * struct work - one scenario
 * @name:   its name
 * @order:  order of the folios
 * @number: number of the system call that the task is in, or TOUCH
 * @times:  how often each folio is cleared before the next one
 * @use:    how each folio is used right after; part of the time
 * @extra:  runs only if named, or if all rows are asked for
 */
static const struct work {
	const char *name;
	unsigned int order;
	long number;
	unsigned int times;
	enum use use;
	bool extra;
} works[] = {
	{ "thp-16k", 2, TOUCH, 1, USE_NONE, true },
	{ "thp-16k-again", 2, TOUCH, TIMES, USE_NONE, true },
	{ "thp-32k", 3, TOUCH, 1, USE_NONE, true },
	{ "thp-64k", 4, TOUCH, 1, USE_NONE, false },
	{ "thp-64k-populate", 4, SYS_madvise, 1, USE_NONE, false },
	{ "thp-64k-again", 4, TOUCH, TIMES, USE_NONE, true },
	{ "thp-64k-then-read", 4, TOUCH, 1, USE_READ, true },
	{ "thp-64k-then-write", 4, TOUCH, 1, USE_WRITE, true },
	{ "thp-64k-then-random", 4, TOUCH, 1, USE_RANDOM, true },
	{ "thp-256k", 6, TOUCH, 1, USE_NONE, false },
	{ "thp-256k-populate", 6, SYS_madvise, 1, USE_NONE, false },
	{ "thp-2m", 9, TOUCH, 1, USE_NONE, false },
	{ "thp-2m-populate", 9, SYS_madvise, 1, USE_NONE, false },
	{ "thp-2m-again", 9, TOUCH, TIMES, USE_NONE, false },
	{ "thp-2m-then-read", 9, TOUCH, 1, USE_READ, false },
	{ "thp-2m-then-write", 9, TOUCH, 1, USE_WRITE, false },
	{ "thp-2m-then-random", 9, TOUCH, 1, USE_RANDOM, false },
	{ "hugetlb-2m", 9, TOUCH, 1, USE_NONE, true },
	{ "hugetlb-2m-populate", 9, SYS_fallocate, 1, USE_NONE, true },
	{ "hugetlb-1g", 18, TOUCH, 1, USE_NONE, true },
	{ "hugetlb-1g-populate", 18, SYS_fallocate, 1, USE_NONE, true },
};

#define WORKS_NR (sizeof(works) / sizeof(works[0]))

static char *folios, *pages_at;
static PER_KERNEL zero_fn *zero;
static size_t page_size; /* of a struct page */

static const struct mode modes[] = { { "auto", -1, NULL },
				     { "cached", BMM_CLEAR, NULL },
				     { "streaming", BMM_CLEAR_STREAMING, NULL },
				     { NULL, -1, NULL } };

static const char *const peers[] = { "rep-stosb", "rep-stosb-4k", NULL };

static void clear_list(struct scenario *s, unsigned int kind, size_t bytes)
{
	const struct work *work = &works[kind];

	snprintf(s->name, sizeof(s->name), "%s", work->name);
	s->kind = kind;
	s->order = work->order;
	s->pages = bytes / PAGE;
	s->bytes = bytes * work->times;
	s->repeat = 1;
	s->modes = modes;
	s->peers = peers;
	s->extra = work->extra;
	s->unlimited = work->times > 1 || work->use;
	s->overwritten = work->use == USE_WRITE;
}

static unsigned int clear_setup(struct scenario *list, uint64_t size)
{
	unsigned int kind, nr = 0;
	size_t whole = size / HUGE_SIZE * HUGE_SIZE, bytes;

	zero = (zero_fn *)symbol_or_null("folio_zero_user", 'k');
	for (kind = 0; kind < WORKS_NR; kind++) {
		if (!zero && works[kind].order < ORDER_LEAST)
			continue;
		bytes = size & -(PAGE << works[kind].order);
		if (bytes)
			clear_list(&list[nr++], kind, bytes);
	}
	page_size = SIZE("page");
	if (!zero)
		zero = (zero_fn *)symbol("clear_huge_page");
	state_sections(START, whole / PAGE, true);
	pages_at = state_pages(START, whole / PAGE);
	folios = map_memory(whole + 2 * HUGE_SIZE) + GUARD;
	folios = (char *)(((uintptr_t)folios + HUGE_SIZE - 1) &
			  ~(HUGE_SIZE - 1));
	AT(uint64_t, symbol("page_offset_base"), 0) = (uint64_t)folios -
						      START * PAGE;
	return nr;
}

static size_t clear_bytes(const struct scenario *s)
{
	return s->pages * PAGE;
}

static void clear_enter(const struct scenario *s)
{
	state_folios(pages_at, s->pages, s->order);
	state_syscall(works[s->kind].number);
}

/* In no cache: folios that are cleared were freed long ago. */
static void clear_reset(const struct scenario *s)
{
	memset(folios - GUARD, DIRTY, clear_bytes(s) + 2 * GUARD);
	evict(folios, clear_bytes(s));
}

/*
 * Where a folio is touched, in pages: at a different place each time. A task
 * that prepares memory walks through it, and gets to the first page first.
 */
static uint64_t clear_hint(const struct scenario *s, uint64_t at)
{
	uint64_t unit = 1ULL << s->order;

	if (works[s->kind].number != TOUCH)
		return at;
	return at + (at / unit * 7 + 5) % unit;
}

static void peer_extent(char *at, size_t bytes)
{
	size_t n;

	for (; bytes; at += n, bytes -= n) {
		n = bytes < BATCH ? bytes : BATCH;
		rep_stosb(at, n);
	}
}

/* The published series: extents on both sides first, then around the touch. */
static void peer_extents(char *folio, size_t bytes, size_t hint)
{
	size_t from = hint > RADIUS * PAGE ? hint - RADIUS * PAGE : 0;
	size_t to = hint + (RADIUS + 1) * PAGE;

	if (to > bytes)
		to = bytes;
	peer_extent(folio + to, bytes - to);
	peer_extent(folio, from);
	peer_extent(folio + from, to - from);
}

/* The code that it replaced, on CPUs with ERMS. */
static void peer_pages(char *folio, size_t bytes, size_t hint)
{
	size_t at;

	for (at = 0; at < bytes; at += PAGE)
		if (at != hint)
			rep_stosb(folio + at, PAGE);
	rep_stosb(folio + hint, PAGE);
}

/* @variant NULL: the kernel, or the module if it is attached. */
static void clear_folio(const struct scenario *s, const struct variant *variant,
			uint64_t at)
{
	size_t bytes = PAGE << s->order, hint = clear_hint(s, at) * PAGE;
	char *folio = folios + at * PAGE;

	if (!variant)
		zero(pages_at + at * page_size, hint, 1U << s->order);
	else if (variant->limit)
		limit_write(variant->limit, BMM_CLEAR_STREAMING, folio, NULL,
			    bytes);
	else if (variant->peer == 1)
		peer_extents(folio, bytes, hint - at * PAGE);
	else
		peer_pages(folio, bytes, hint - at * PAGE);
}

static void clear_all(const struct scenario *s, const struct variant *variant)
{
	const struct work *work = &works[s->kind];
	unsigned int i;
	uint64_t at;

	for (at = 0; at < s->pages; at += 1ULL << s->order) {
		for (i = 0; i < work->times; i++)
			clear_folio(s, variant, at);
		use_extent(work->use, folios + at * PAGE, PAGE << s->order);
	}
}

/* Every byte is zero, and nothing around the folios was touched. */
static bool clear_right(const struct scenario *s)
{
	char *behind = folios + clear_bytes(s), *ahead = folios - GUARD;

	return bytes_are(folios, clear_bytes(s), 0) &&
	       bytes_are(ahead, GUARD, DIRTY) &&
	       bytes_are(behind, GUARD, DIRTY);
}

static char *clear_output(const struct scenario *s)
{
	return folios + clear_bytes(s) / 2;
}

const struct subject clear_subject = {
	.name = "clear",
	.path = "bmm_clear_path",
	.op = BMM_CLEAR_STREAMING,
	.modes = modes,
	.ops = 1 << BMM_CLEAR | 1 << BMM_CLEAR_STREAMING,
	.setup = clear_setup,
	.enter = clear_enter,
	.reset = clear_reset,
	.call = clear_all,
	.right = clear_right,
	.output = clear_output,
};
