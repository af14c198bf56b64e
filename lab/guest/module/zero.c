// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs bulkmm_lab/zero calls folio_zero_user() as no fault does: with folios
 * of every order, single pages included, and hints at both ends, outside, and
 * far away. Whoever serves the call, the folio must be zero afterwards and its
 * neighbours unchanged. bulkmm_lab/zero_time times such calls.
 *
 * The call goes to the function's entry, where a hook sits.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

#include "../../../module/compat/compat.h"
#include "../../../module/symbols.h"
#include "lab.h"

#define DIRT  0x5a5a5a5a5a5a5a5aULL
#define TRIES 1024	   /* folios allocated to find three in a row, */
#define MOST  (96UL << 20) /* but at most this many bytes of them */
#define CALLS 4096

DEFINE_STATIC_CALL_NULL(bmm_zero_user, BMM_ZERO_USER);

enum corrupt {
	NOTHING,
	INSIDE, /* leave a byte in the folio: it must be found */
	BESIDE, /* change a word after the folio: likewise */
};

/* Result of the last run; @hint and @offset are of the first wrong word. */
static struct {
	unsigned int order;
	unsigned long calls, wrong, beside;
	unsigned long hint, offset;
} found;

/* Times of the calls that were timed last. */
static struct {
	unsigned int order, calls;
	u64 ns[CALLS];
} taken;

static void fill(struct folio *folio)
{
	u64 *to = folio_address(folio);
	unsigned long i;

	for (i = 0; i < folio_size(folio) / sizeof(u64); i++)
		WRITE_ONCE(to[i], DIRT);
}

/* Counts the words of a folio that differ from @wanted. */
static unsigned long others(struct folio *folio, u64 wanted, unsigned long hint)
{
	const u64 *at = folio_address(folio);
	unsigned long i, n = 0;

	for (i = 0; i < folio_size(folio) / sizeof(u64); i++)
		if (at[i] != wanted && !n++ && !found.wrong && !found.beside) {
			found.hint = hint;
			found.offset = i * sizeof(u64);
		}
	return n;
}

static void call(struct folio **row, unsigned long hint, enum corrupt corrupt)
{
	struct folio *folio = row[1];

	fill(folio);
	static_call(bmm_zero_user)(BMM_CLEAR_ARGS(folio, hint));
	if (corrupt == INSIDE)
		((u8 *)folio_address(folio))[folio_size(folio) - 1] = 1;
	if (corrupt == BESIDE)
		*(u64 *)folio_address(row[2]) ^= 1;
	found.wrong += others(folio, 0, hint);
	found.beside += others(row[0], DIRT, hint);
	found.beside += others(row[2], DIRT, hint);
	found.calls++;
	cond_resched();
}

static void try_hints(struct folio **row, int corrupt)
{
	unsigned long bytes = folio_size(row[1]), base = bytes << 10;
	const unsigned long hints[] = {
		base, /* its first byte */
		base + 1,
		base + PAGE_SIZE - 1,
		base + PAGE_SIZE,
		base + bytes / 2,
		base + bytes - PAGE_SIZE,
		base + bytes - 1,	      /* its last byte */
		base + bytes,		      /* one past */
		base - 1,		      /* one before */
		base + 5 * bytes + PAGE_SIZE, /* far outside */
		0,
		PAGE_SIZE,
		ULONG_MAX - 1, /* no fault has address ULONG_MAX */
	};
	unsigned int i;

	memset(&found, 0, sizeof(found));
	found.order = folio_order(row[1]);
	fill(row[0]);
	fill(row[2]);
	for (i = 0; i < ARRAY_SIZE(hints); i++)
		call(row, hints[i], corrupt);
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Finds three in a row among @n sorted PFNs of folios of @pages. */
static int find_row(const u64 *pfn, int n, unsigned long pages,
		    struct folio **row)
{
	int i, of;

	for (i = 0; i + 2 < n; i++)
		if (pfn[i] + pages == pfn[i + 1] &&
		    pfn[i] + 2 * pages == pfn[i + 2]) {
			for (of = 0; of < 3; of++)
				row[of] = pfn_folio(pfn[i + of]);
			return 0;
		}
	return n < 3 ? -ENOMEM : -EAGAIN; /* memory is fragmented */
}

/* Runs @work on three adjacent folios of @order: the middle one is cleared. */
static int with_row(unsigned int order,
		    void (*work)(struct folio **row, int arg), int arg)
{
	u64 *pfn = kcalloc(TRIES, sizeof(*pfn), GFP_KERNEL);
	int n = 0, err;
	int most = min_t(unsigned long, TRIES, MOST >> (PAGE_SHIFT + order));
	struct folio *folio, *row[3];

	if (!pfn)
		return -ENOMEM;
	while (n < most && (folio = folio_alloc(GFP_KERNEL, order)))
		pfn[n++] = folio_pfn(folio);
	sort(pfn, n, sizeof(*pfn), by_value, NULL);
	err = find_row(pfn, n, 1UL << order, row);
	if (!err)
		work(row, arg);
	while (n--)
		folio_put(pfn_folio(pfn[n]));
	kfree(pfn);
	return err;
}

/* The hint is in the second page, so that all three regions exist. */
static void time_calls(struct folio **row, int calls)
{
	struct folio *folio = row[1];
	u64 begun;
	int i;

	taken.order = folio_order(folio);
	taken.calls = calls;
	migrate_disable();
	for (i = 0; i < calls; i++) {
		cond_resched();
		begun = ktime_get_ns();
		static_call(bmm_zero_user)(BMM_CLEAR_ARGS(folio, PAGE_SIZE));
		taken.ns[i] = ktime_get_ns() - begun;
	}
	migrate_enable();
}

/* Reads two numbers; the second is 0 if it is missing. */
static int two(const char *text, unsigned int *a, unsigned int *b)
{
	*b = 0;
	if (sscanf(text, "%u %u", a, b) < 1)
		return -EINVAL;
	return *a > MAX_PAGE_ORDER ? -ERANGE : 0;
}

/* "ORDER"; "ORDER 1" corrupts the folio, "ORDER 2" the one after it. */
static int zero_write(char *text)
{
	unsigned int order, corrupt;
	int err = two(text, &order, &corrupt);

	return err ?: with_row(order, try_hints, corrupt);
}

static int zero_show(struct seq_file *m)
{
	seq_printf(
		m,
		"order=%u calls=%lu wrong=%lu beside=%lu hint=0x%lx offset=%lu\n",
		found.order, found.calls, found.wrong, found.beside, found.hint,
		found.offset);
	return 0;
}

/* "ORDER CALLS" */
static int zero_time_write(char *text)
{
	unsigned int order, calls;
	int err = two(text, &order, &calls);

	if (err)
		return err;
	if (!calls || calls > CALLS)
		return -ERANGE;
	err = with_row(order, time_calls, calls);
	sort(taken.ns, taken.calls, sizeof(u64), by_value, NULL);
	return err;
}

static int zero_time_show(struct seq_file *m)
{
	seq_printf(m, "order=%u calls=%u median_ns=%llu\n", taken.order,
		   taken.calls, taken.ns[taken.calls / 2]);
	return 0;
}

static int zero_init(void)
{
	long entry = bmm_symbol_entry(__stringify(BMM_ZERO_USER));

	if (IS_ERR_VALUE(entry))
		return entry;
	static_call_update(bmm_zero_user, (void *)entry);
	return 0;
}

BMM_LAB_PART(zero, NULL, zero_init, NULL,
	     { "zero", .write = zero_write, .show = zero_show },
	     { "zero_time", .write = zero_time_write, .show = zero_time_show });
