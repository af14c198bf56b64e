// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Make a piece of a mapping resident. MADV_POPULATE_WRITE does it in one call.
 * Where that is missing, the kernel touches each page too: FUTEX_WAKE_OP
 * atomically adds 0 to its first word, and returns an error where a store from
 * user space would raise SIGBUS. Not FUTEX_PRIVATE_FLAG: without it the kernel
 * first pins the page (get_futex_key()), so that no device's register is read.
 *
 * On a resident 4 KiB page, MADV_POPULATE_WRITE costs a good part of what
 * making the page does. So if the first page of a piece is resident and that
 * will do, the rest is looked up in /proc/self/pagemap: all at once if uniform
 * (PAGEMAP_SCAN, Linux 6.7, some ns a page), else by entries, for up to a tenth
 * of the cost of making the page; and only what is missing is populated.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define PRESENT (1ULL << 63) /* in a pagemap entry */
#define ENTRIES 512U	     /* 4 KiB of stack: of a thread that may have 16 */

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
 * Whether a page that is resident needs no more work. Not to be written where a
 * write to it may fault, or it may go: private memory after fork() or MADV_FREE,
 * files not on tmpfs. And it may be off limits: the kernel returns the error.
 */
static bool resident_will_do(const struct pages *how, const struct map *map)
{
	if (how->advice == MADV_POPULATE_READ)
		return map->is & READABLE;
	return map->is & WRITABLE && map->is & UNWATCHED;
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
			if (!(entries[i] & PRESENT))
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

/* Whether all of a piece is resident; false if the kernel is older. */
static bool all_there(const struct pages *how, uintptr_t from, uintptr_t to)
{
	struct region region = { 0 };
	struct scan scan = { .size = sizeof(scan),
			     .start = from,
			     .end = to,
			     .vec = (uintptr_t)&region,
			     .vec_len = 1,
			     .mask = SCAN_PRESENT,
			     .wanted = SCAN_PRESENT };

	return ioctl(how->pagemap, SCAN, &scan) == 1 && region.start == from &&
	       region.end == to;
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
	bool huge = map->page > base_page(); /* the kernel is quick with them */
	uint64_t first;

	outcome->there = how->pagemap >= 0 &&
			 (huge || resident_will_do(how, map)) &&
			 look(how, from, &first, 1) && first & PRESENT;
	if (huge || !outcome->there)
		fill(how, from, to, map->page, outcome);
	else if (!all_there(how, from, to))
		fill_holes(how, from, to, map, outcome);
}
