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
 * of the cost of making the page; and only what is missing is populated, or
 * that write-protected by a userfaultfd. A protection key is not shown there,
 * but holds for a whole mapping: the kernel is asked for the first page of each
 * piece, and no piece spans two mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "populate.h"

#define OF_FILE	  (1ULL << 61) /* or shared memory; these in a pagemap entry */
#define GUARDED	  (1ULL << 57) /* by a userfaultfd: Linux 5.13 */
#define EXCLUSIVE (1ULL << 56) /* mapped once: not shared after fork() */
#define ENTRIES	  256U /* 2 KiB of stack: of a thread that may have 16 */
#define DENSE	  8U   /* one page in so many is missing */

/* As in <linux/fs.h>, which may be older than the kernel. */
struct region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walked, vec, vec_len, most;
	uint64_t inverted, mask, any, wanted;
};

#define SCAN	     _IOWR('f', 16, struct scan)
#define SCAN_WRITTEN 2ULL
#define SCAN_PRESENT 8ULL
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

/* Whether it is said of a page that nothing is mapped there. */
static bool reports_unmapped(uintptr_t page, int advice)
{
	return kernel_madvise(page, base_page(), advice) && errno == ENOMEM;
}

/*
 * Whether madvise() does this: then it does not find the second page of the
 * address space, or, in the rare program that has that, the last but one, which
 * is no program's. Others accept it like any advice, do nothing, and say that
 * it worked (qemu-user, some filters), or refuse it unless the range is empty
 * (qemu-user from 11 on). Not asked by an advice that no kernel has: filters
 * kill for what they do not know.
 */
static bool advice_works(int advice)
{
	return reports_unmapped(base_page(), advice) ||
	       reports_unmapped(-2 * base_page(), advice);
}

/* The kernel's own call; false: something of it failed, or it is not there. */
bool populate_by_kernel(uintptr_t from, size_t len, bool read)
{
	int advice = read ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
	static bool known; /* that its success means something */

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED)) {
		if (!advice_works(advice))
			return false;
		__atomic_store_n(&known, true, __ATOMIC_RELAXED);
	}
	return !kernel_madvise(from, len, advice);
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
	how->touch = !advice_works(how->advice);
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

static void fail(struct page_result *result, uintptr_t page, size_t len,
		 int error)
{
	result->failed = page;
	result->len = len;
	result->error = -error;
}

static bool touch_all(uintptr_t from, uintptr_t to, size_t page,
		      struct page_result *result)
{
	int error;

	for (; from < to; from = (from & ~(page - 1)) + page) {
		error = touch(from);
		if (error) {
			fail(result, from, page, error);
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
		   struct page_result *result)
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
		fail(result, from, to - from, errno);
		return false;
	}
	return true;
}

static bool fill(const struct pages *how, uintptr_t from, uintptr_t to,
		 size_t page, struct page_result *result)
{
	if (from >= to)
		return true;
	if (how->touch)
		return touch_all(from, to, page, result);
	return advise(how->advice, from, to, page, result);
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
		return map->flags & READABLE;
	return map->flags & WRITABLE && map->flags & UNWATCHED;
}

static bool is_there(const struct pages *how, uint64_t entry)
{
	uint64_t bad = how->advice == MADV_POPULATE_READ ? 0 : GUARDED;

	return (entry & (PRESENT | bad)) == PRESENT;
}

/* Populates what is missing of a few pages. */
static bool fill_each(const struct pages *how, uintptr_t from,
		      const uint64_t *entries, size_t count, size_t page,
		      struct page_result *result)
{
	uintptr_t missing = from, base = base_page();
	size_t i;

	for (i = 0; i < count; i++) {
		if (!is_there(how, entries[i]))
			continue;
		if (!fill(how, missing, from + i * base, page, result))
			return false;
		missing = from + (i + 1) * base;
	}
	return fill(how, missing, from + count * base, page, result);
}

/*
 * Calls for each hole cost more than they save where holes are dense: then the
 * kernel gets all of the pages, and those that follow without a look at them.
 */
static void fill_holes(const struct pages *how, uintptr_t from, uintptr_t to,
		       const struct map *map, struct page_result *result)
{
	size_t base = base_page(), count, missing, i;
	uint64_t entries[ENTRIES];
	uintptr_t end;

	for (; from < to; from = end) {
		count = (to - from) / base;
		count = look(how, from, entries,
			     count < ENTRIES ? count : ENTRIES);
		for (missing = i = 0; i < count; i++)
			missing += !is_there(how, entries[i]);
		end = from + count * base;
		result->resident &= count && !missing;
		if (!count || missing > count / DENSE) {
			end = count ? end + (DENSE - 1) * ENTRIES * base : to;
			end = end < to ? end : to;
			if (!fill(how, from, end, map->page, result))
				return;
		} else if (!fill_each(how, from, entries, count, map->page,
				      result)) {
			return;
		}
	}
}

/*
 * Whether all of a piece is resident; false if the kernel is older. A page that
 * a userfaultfd guards is not "written", nor, from Linux 7.3 on, is any outside
 * of its mappings. So if none is, the first page tells.
 */
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

	if (how->advice != MADV_POPULATE_READ)
		scan.wanted |= SCAN_WRITTEN;
	return ioctl(how->pagemap, SCAN, &scan) == 1 && region.start == from &&
	       region.end == to;
}

/* Whether a page is, or is part of, a huge one; -1: the kernel is older. */
int pages_huge(const struct pages *how, uintptr_t page)
{
	struct region region = { 0 };
	struct scan scan = { .size = sizeof(scan),
			     .start = page,
			     .end = page + base_page(),
			     .vec = (uintptr_t)&region,
			     .vec_len = 1,
			     .mask = SCAN_HUGE | SCAN_PRESENT,
			     .wanted = SCAN_HUGE };

	return ioctl(how->pagemap, SCAN, &scan);
}

/* Whether pages of a file are in the page cache, by the first and the last. */
bool pages_cached(uintptr_t from, uintptr_t to)
{
	uintptr_t page = base_page();
	unsigned char first = 0, last = 0;

	from &= -page;
	to = (to - 1) & -page;
	return !mincore((void *)from, page, &first) && first & 1 &&
	       (to == from || (!mincore((void *)to, page, &last) && last & 1));
}

/* Whether looking at a small range may save work: at private memory it does not. */
bool pages_worth_reading(uintptr_t from, bool read)
{
	uint64_t entry = 0;

	return pages_cached(from, from + 1) && pages_entry(from, &entry) &&
	       entry & PRESENT && (read || entry & OF_FILE);
}

/*
 * The pagemap entry of one page, for those who do not have the file open. A
 * thread must not end here: the kernel's own call does not end one either.
 */
bool pages_entry(uintptr_t page, uint64_t *entry)
{
	struct pages how = { .pagemap = -1 };
	int cancel;
	bool got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	how.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	got = how.pagemap >= 0 && look(&how, page, entry, 1);
	pages_close(&how);
	pthread_setcancelstate(cancel, NULL);
	return got;
}

/*
 * Whether a page of private memory is there, and is copied when it is written:
 * after a fork, or the zero page. Of small ones, each copy interrupts the CPUs
 * of all other threads, which takes longer than the copy: one thread alone is
 * quicker, two take up to twice its time.
 */
static bool is_copied(const struct pages *how, const struct map *map,
		      uint64_t entry)
{
	return how->advice != MADV_POPULATE_READ && !(map->flags & SHARED) &&
	       entry & PRESENT && (entry & (OF_FILE | EXCLUSIVE)) != EXCLUSIVE;
}

/**
 * pages_populate() - make a piece resident
 * @how:     from pages_open()
 * @from:    its first page
 * @to:      its end
 * @map:     what is known of the mapping
 * @result:  result: the first page that failed, if any; all before is resident
 */
void pages_populate(struct pages *how, uintptr_t from, uintptr_t to,
		    const struct map *map, struct page_result *result)
{
	bool huge = map->page > base_page(); /* the kernel is quick with them */
	bool will_do = resident_will_do(how, map);
	uint64_t first = 0;

	if (how->pagemap >= 0)
		look(how, from, &first, 1);
	result->resident = is_there(how, first);
	if (huge && !will_do) /* a copy is as much work as a new page */
		result->resident &= (first & (OF_FILE | EXCLUSIVE)) == EXCLUSIVE;
	if (!huge && !will_do)
		result->resident = is_copied(how, map, first);
	if (huge || !will_do || !result->resident)
		fill(how, from, to, map->page, result);
	else if (fill(how, from, from + map->page, map->page, result) &&
		 !all_there(how, from, to))
		fill_holes(how, from, to, map, result);
}
