// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making a piece of a mapping resident. MADV_POPULATE_WRITE does it in the
 * kernel. Where that is missing each page is touched by the kernel too:
 * FUTEX_WAKE_OP adds 0 to its first word, atomically, and returns an error
 * where a store of ours would raise SIGBUS.
 *
 * For a page of 4 KiB that is there, MADV_POPULATE_WRITE costs a good part of
 * making it. So where a piece begins with a page that is there, the rest is
 * looked at in /proc/self/pagemap: at once where all is alike (PAGEMAP_SCAN,
 * Linux 6.7, some ns a page), else by entries, up to a tenth of making the
 * page; and only what is missing is asked for. Where a write to a page that is
 * there may take a fault (private memory after a fork: forks.c; files that are
 * not of tmpfs) the kernel does all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define PRESENT	  (1ULL << 63) /* bits of an entry of pagemap */
#define OF_FILE	  (1ULL << 61)
#define EXCLUSIVE (1ULL << 56)
#define ENTRIES 2048U /* 16 KiB of the stack; fewer cost up to twice as much */

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

/* Not madvise(), which a preload may stand in for: ours does. */
static long kernel_madvise(uintptr_t from, size_t len, int advice)
{
	return syscall(SYS_madvise, from, len, advice);
}

static size_t base_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/**
 * pages_open() - find out how to do it
 * @how:  result
 * @read: for reading
 * @look: whether it may pay to look for pages that are there
 *
 * Return: 0, or -EOPNOTSUPP where the kernel can populate for writing only.
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
	static unsigned int nobody; /* waits here */
	long woken;

	/* compared with -2048, as 0 would wake who waits for the word */
	woken = syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
			0, 0UL, page,
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

/* The middle of a piece, between two of its pages. */
static uintptr_t halfway(uintptr_t from, uintptr_t to, size_t page)
{
	uintptr_t middle = (from + (to - from) / 2 + page - 1) & ~(page - 1);

	return middle < to ? middle : to - page;
}

/* Of a piece that fails, all before the page that does is populated. */
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
			continue; /* there was a page after all */
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
 * Whether a page needs nothing any more: a file's that is shared, or one that is
 * this process's alone. The page of zeroes, and what a fork left, are neither.
 */
static bool is_there(const struct pages *how, const struct map *map, uint64_t e)
{
	if (!(e & PRESENT))
		return false;
	if (how->advice == MADV_POPULATE_READ)
		return true;
	return e & OF_FILE ? map->shared : (e & EXCLUSIVE) != 0;
}

/* What is there may still be forbidden: then the kernel has to say so. */
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

/* What all of a piece is alike in; 0 where it is not, or the kernel is older. */
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

/* Whether a write to a page that is there may take a fault all the same. */
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
		if (alone != UNKNOWN) /* else the next slice may be told */
			__atomic_store_n(&how->alone, alone, __ATOMIC_RELAXED);
	}
	return alone != true;
}

/* Of a piece that begins with a page that is there. */
static void fill_rest(struct pages *how, uintptr_t from, uintptr_t to,
		      const struct map *map, struct outcome *outcome)
{
	bool private = how->advice != MADV_POPULATE_READ && !map->shared;
	bool huge = map->page > base_page(), ask = huge || may_fault(how, map);
	uint64_t all = 0;

	/* base pages that were not looked at count as made */
	outcome->there = huge || !ask;
	/* a file's page is not enough where a write makes a copy of it */
	if (!ask && !(private && !map->anonymous))
		all = alike(how, from, to);
	/* until 2025 the huge page of zeroes was not told from others */
	if (private && all == (SCAN_PRESENT | SCAN_HUGE))
		ask = true;
	if (ask) /* the kernel itself is quick with huge pages */
		fill(how, from, to, map->page, outcome);
	else if ((all & ~SCAN_HUGE) != SCAN_PRESENT)
		fill_holes(how, from, to, map, outcome);
}

/**
 * pages_populate() - make a piece resident
 * @how:     of pages_open()
 * @from:    its first page
 * @to:      behind its last
 * @map:     what is known of the mapping
 * @outcome: result: which page could not be made, if any; all before it is there
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
