// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Make a piece of a mapping resident. MADV_POPULATE_WRITE does it in one call.
 * Where that is missing, the kernel touches each page too: FUTEX_WAKE_OP
 * atomically adds 0 to its first word, and returns an error where a store from
 * user space would raise SIGBUS. Not FUTEX_PRIVATE_FLAG: without it the kernel
 * first pins the page (get_futex_key()), so that no device's register is read.
 *
 * On a resident 4 KiB page, MADV_POPULATE_WRITE costs a good part of what
 * making the page does. So if the first page of a piece is resident, the rest
 * is looked up in /proc/self/pagemap: all at once if uniform (PAGEMAP_SCAN,
 * Linux 6.7, some ns a page), else by entries, for up to a tenth of the cost of
 * making the page; and only what is missing is populated. Where a write to a
 * resident page may fault (private memory after a fork: forks.c; files not on
 * tmpfs), the kernel does all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define PRESENT	  (1ULL << 63) /* bits of a pagemap entry */
#define OF_FILE	  (1ULL << 61)
#define EXCLUSIVE (1ULL << 56)
#define ENTRIES	  2048U /* 16 KiB of stack; fewer cost up to twice the time */

/* As in <linux/fs.h>, which may be older than the kernel. */
struct region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walked, vec, vec_len, most;
	uint64_t inverted, mask, any, wanted;
};

#define SCAN	     _IOWR('f', 16, struct scan)
#define SCAN_PRESENT 8ULL
#define SCAN_ZERO    32ULL
#define SCAN_HUGE    64ULL

/* Not madvise(), which a preloaded library may replace: ours does. */
static long kernel_madvise(uintptr_t from, size_t len, int advice)
{
	return syscall(SYS_madvise, from, len, advice);
}

static size_t base_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/**
 * pages_open() - find out how pages can be made resident
 * @how:  result
 * @read: for reading only
 * @look: whether looking for resident pages may save time
 *
 * Return: 0, or -EOPNOTSUPP if this kernel can populate for writing only.
 */
int pages_open(struct pages *how, bool read, bool look)
{
	how->advice = read ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
	how->touch = kernel_madvise(0, 0, how->advice) != 0;
	how->pagemap = -1;
	how->alone = UNKNOWN;
	if (how->touch && read)
		return -EOPNOTSUPP;
	if (look)
		how->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	return 0;
}

void pages_close(struct pages *how)
{
	if (how->pagemap >= 0)
		close(how->pagemap);
}

static int touch(uintptr_t page)
{
	static unsigned int nobody; /* waits on this */
	long woken;

	/* compares with -2048: with 0, waiters on the word would be woken */
	woken = syscall(SYS_futex, &nobody, FUTEX_WAKE_OP, 0, 0UL, page,
			FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0x800));
	return woken < 0 ? errno : 0;
}

static void fail(struct outcome *outcome, uintptr_t page, size_t len, int error)
{
	outcome->failed = page;
	outcome->len = len;
	outcome->error = -error;
}

static bool touch_all(uintptr_t from, uintptr_t to, size_t page,
		      struct outcome *outcome)
{
	int error;

	for (; from < to; from = (from & ~(page - 1)) + page) {
		error = touch(from);
		if (error) {
			fail(outcome, from, page, error);
			return false;
		}
	}
	return true;
}

/* The middle of a piece, at a page boundary. */
static uintptr_t halfway(uintptr_t from, uintptr_t to, size_t page)
{
	uintptr_t middle = (from + (to - from) / 2 + page - 1) & ~(page - 1);

	return middle < to ? middle : to - page;
}

/* If it fails at a page, everything before that page is populated. */
static bool advise(int advice, uintptr_t from, uintptr_t end, size_t page,
		   struct outcome *outcome)
{
	uintptr_t to, middle;

	for (; kernel_madvise(from, end - from, advice); from = to) {
		for (to = end; to - from > page;) {
			middle = halfway(from, to, page);
			if (kernel_madvise(from, middle - from, advice))
				to = middle;
			else
				from = middle;
		}
		if (!kernel_madvise(from, to - from, advice))
			continue; /* it worked after all */
		fail(outcome, from, to - from, errno);
		return false;
	}
	return true;
}

static bool fill(const struct pages *how, uintptr_t from, uintptr_t to,
		 size_t page, struct outcome *outcome)
{
	if (from >= to)
		return true;
	if (how->touch)
		return touch_all(from, to, page, outcome);
	return advise(how->advice, from, to, page, outcome);
}

static size_t look(const struct pages *how, uintptr_t from, uint64_t *entries,
		   size_t count)
{
	ssize_t got = pread(how->pagemap, entries, count * sizeof(*entries),
			    (off_t)(from / base_page() * sizeof(*entries)));

	return got < 0 ? 0 : (size_t)got / sizeof(*entries);
}

/*
 * Whether a page needs no more work: it belongs to a shared file mapping, or to
 * this process alone. Neither holds for the zero page or what a fork left.
 */
static bool is_there(const struct pages *how, const struct map *map, uint64_t e)
{
	if (!(e & PRESENT))
		return false;
	if (how->advice == MADV_POPULATE_READ)
		return true;
	return e & OF_FILE ? map->shared : (e & EXCLUSIVE) != 0;
}

/* A resident page may still be off limits: let the kernel return the error. */
static bool allowed(const struct pages *how, const struct map *map)
{
	return how->advice == MADV_POPULATE_READ ? map->readable :
						   map->writable;
}

static void fill_holes(const struct pages *how, uintptr_t from, uintptr_t to,
		       const struct map *map, struct outcome *outcome)
{
	size_t base = base_page(), left, got, i;
	uintptr_t missing = from;
	uint64_t entries[ENTRIES];

	for (; from < to; from += got * base) {
		left = (to - from) / base;
		got = look(how, from, entries, left < ENTRIES ? left : ENTRIES);
		if (!got)
			break;
		for (i = 0; i < got; i++) {
			if (!is_there(how, map, entries[i]))
				continue;
			outcome->there &= missing == from + i * base;
			if (!fill(how, missing, from + i * base, map->page,
				  outcome))
				return;
			missing = from + (i + 1) * base;
		}
	}
	outcome->there &= missing == to;
	fill(how, missing, to, map->page, outcome);
}

/* The categories of a uniform piece; 0 if it is not, or the kernel is older. */
static uint64_t alike(const struct pages *how, uintptr_t from, uintptr_t to)
{
	struct region region = { 0 };
	struct scan scan = { .size = sizeof(scan),
			     .start = from,
			     .end = to,
			     .vec = (uintptr_t)&region,
			     .vec_len = 1,
			     .mask = SCAN_PRESENT,
			     .wanted = SCAN_PRESENT | SCAN_ZERO | SCAN_HUGE };

	if (ioctl(how->pagemap, SCAN, &scan) != 1 || region.start != from ||
	    region.end != to)
		return 0;
	return region.categories;
}

/* Whether a write to a resident page may fault all the same. */
static bool may_fault(struct pages *how, const struct map *map)
{
	int alone;

	if (how->advice == MADV_POPULATE_READ)
		return false;
	if (map->shared)
		return map->watched;
	alone = __atomic_load_n(&how->alone, __ATOMIC_RELAXED);
	if (alone == UNKNOWN) {
		alone = forks_none();
		if (alone != UNKNOWN) /* else the next slice may find out */
			__atomic_store_n(&how->alone, alone, __ATOMIC_RELAXED);
	}
	return alone != true;
}

/* Populates a piece whose first page is resident. */
static void fill_rest(struct pages *how, uintptr_t from, uintptr_t to,
		      const struct map *map, struct outcome *outcome)
{
	bool private = how->advice != MADV_POPULATE_READ && !map->shared;
	bool huge = map->page > base_page(), ask = huge || may_fault(how, map);
	uint64_t all = 0;

	/* base pages that were not looked up count as made */
	outcome->there = huge || !ask;
	/* a file's page is not enough if a write copies it */
	if (!ask && !(private && !map->anonymous))
		all = alike(how, from, to);
	/* until 2025 the huge zero page was not told from other huge pages */
	if (private && all == (SCAN_PRESENT | SCAN_HUGE))
		ask = true;
	if (ask) /* the kernel is quick with huge pages */
		fill(how, from, to, map->page, outcome);
	else if ((all & ~SCAN_HUGE) != SCAN_PRESENT)
		fill_holes(how, from, to, map, outcome);
}

/**
 * pages_populate() - make a piece resident
 * @how:     from pages_open()
 * @from:    its first page
 * @to:      its end
 * @map:     what is known of the mapping
 * @outcome: result: the first page that failed, if any; all before is resident
 */
void pages_populate(struct pages *how, uintptr_t from, uintptr_t to,
		    const struct map *map, struct outcome *outcome)
{
	uint64_t first;

	if (how->pagemap >= 0 && allowed(how, map) &&
	    look(how, from, &first, 1) && is_there(how, map, first))
		fill_rest(how, from, to, map, outcome);
	else
		fill(how, from, to, map->page, outcome);
}
