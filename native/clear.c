// SPDX-License-Identifier: GPL-2.0-only
/*
 * clear: folio_zero_user() on huge pages that a fault touches (demand), or that
 * a system call prepares (populate).
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "native.h"

#define START	 0x100000ULL /* the first folio's PFN */
#define DIRTY	 0x5a
#define DEMAND	 0
#define POPULATE 1

typedef void zero_fn(void *folio, uint64_t hint);
typedef void compound_fn(void *page, unsigned int order);

static char *folios, *pages_at;
static zero_fn *zero;
static size_t whole; /* bytes of all folios; GUARD more on each side */

static unsigned int clear_setup(struct scenario *list, uint64_t size)
{
	static const struct mode modes[] = { { "auto", -1 },
					     { "cached", 0 },
					     { "streaming", 1 },
					     { NULL, -1 } };
	static const unsigned int orders[] = { 4, 6, 9 };
	unsigned int i, nr = 0;

	whole = size / HUGE_SIZE * HUGE_SIZE;
	for (i = 0; i < 6; i++) {
		struct scenario *s = &list[nr++];

		s->order = orders[i / 2];
		s->kind = i % 2;
		snprintf(s->name, sizeof(s->name), "thp-%s%s",
			 s->order == 9 ? "2m" :
			 s->order == 6 ? "256k" :
					 "64k",
			 s->kind == POPULATE ? "-populate" : "");
		s->from = START;
		s->pages = whole / PAGE;
		s->bytes = whole;
		s->repeat = 1;
		s->modes = modes;
	}
	zero = (zero_fn *)symbol("folio_zero_user");
	state_sections(START, whole / PAGE, true);
	pages_at = state_pages(START, whole / PAGE);
	folios = memory(whole + HUGE_SIZE) + GUARD;
	folios = (char *)(((uintptr_t)folios + HUGE_SIZE - 1) &
			  ~(HUGE_SIZE - 1));
	AT(uint64_t, symbol("page_offset_base"), 0) = (uint64_t)folios -
						      START * PAGE;
	return nr;
}

/* The kernel's own function makes compound pages of the struct pages. */
static void clear_enter(const struct scenario *s)
{
	compound_fn *compound = (compound_fn *)symbol("prep_compound_page");
	uint64_t size = SIZE("page"), at;

	memset(pages_at, 0, s->pages * size);
	for (at = 0; at < s->pages; at += 1ULL << s->order)
		compound(pages_at + at * size, s->order);
	state_syscall(s->kind == POPULATE ? SYS_madvise : -1);
}

static void clear_reset(const struct scenario *s)
{
	memset(folios - GUARD, DIRTY, whole + 2 * GUARD);
}

/* Each folio is touched somewhere else. */
static void clear_call(const struct scenario *s)
{
	uint64_t size = SIZE("page"), unit = 1ULL << s->order, at;

	for (at = 0; at < s->pages; at += unit)
		zero(pages_at + at * size,
		     (at + (at / unit * 7 + 5) % unit) * PAGE);
}

static void clear_limit(const struct scenario *s, const struct arm *arm)
{
	struct variant v = { .op = BMM_CLEAR_STREAMING, .limit = arm->limit };
	size_t unit = PAGE << s->order, at;

	for (at = 0; at < whole; at += unit)
		limit_write(&v, folios + at, NULL, unit);
}

static void clear_keep(const struct scenario *s)
{
}

static bool all(const char *at, size_t bytes, char value)
{
	return at[0] == value && !memcmp(at, at + 1, bytes - 1);
}

/* Every byte is zero, and none beside the folios was touched. */
static bool clear_right(const struct scenario *s)
{
	return all(folios, whole, 0) && all(folios - GUARD, GUARD, DIRTY) &&
	       all(folios + whole, GUARD, DIRTY);
}

static char *clear_output(const struct scenario *s)
{
	return folios + whole / 2;
}

const struct family clear_family = {
	.name = "clear",
	.path = "bmm_clear_path",
	.op = BMM_CLEAR_STREAMING,
	.picks = 2,
	.setup = clear_setup,
	.enter = clear_enter,
	.reset = clear_reset,
	.call = clear_call,
	.limit = clear_limit,
	.keep = clear_keep,
	.right = clear_right,
	.output = clear_output,
};
