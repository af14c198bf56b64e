// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault huge pages in, by every way there is, and prove that a page nobody has
 * written to holds only zeros. Memory is filled with a pattern before it is
 * freed, and another such process can keep dirtying free memory, so that a page
 * that was not cleared shows.
 *
 * A folio counts only if it has the requested size according to the kernel's
 * page flags: a mapping that fell back to small pages would prove nothing.
 *
 * On arm64 memory tags (MTE) are proved, too: four bits for every 16 bytes,
 * stored beside the data and not cleared with it.
 *
 * Hugetlb pages can be copied, moved, broken or given up before they are freed,
 * which they always are full of the pattern.
 */
#include <linux/kernel-page-flags.h>
#include <sys/prctl.h>

#include "bulkmm.h"
#include "guest.h"
#include "measure.h"

#define THP	     "/sys/kernel/mm/transparent_hugepage"
#define PARENT	     0x1111111111111111UL /* what a fault stores */
#define GRANULE	     16UL		  /* bytes that share a memory tag */
#define DIRT	     0xa5a5a5a5a5a5a5a5UL
#define CHILD	     0x2222222222222222UL /* what a child stores to its copy */
#define CHILD_WORD   7			  /* where, in the last page */
#define TAG	     5UL		  /* what memory is tagged with */
#define FLAG(name)   (1UL << KPF_##name)  /* of /proc/kpageflags */
#define SOFT_OFFLINE 101		  /* MADV_SOFT_OFFLINE */

/* What to do, by the command's options. */
static struct work {
	int hugetlb;
	uint64_t bytes;	   /* of a folio */
	uint64_t folios;   /* -n: in all, by all ways in turn */
	uint64_t batch;	   /* -b: folios at once */
	uint64_t seconds;  /* -t: run this long, failures allowed, */
	const char *until; /* -u: and until this file exists, or NULL */
	int plant; /* -p: leave a byte in the last folio: it must be found */
	int faults_only; /* -f: neither check folios nor fill them */
	int tagged;	 /* -m: memory has tags, to be cleared like the data */
	int unreserved;	 /* -c: hugetlb pages; and count a batch's faults */
	int apart; /* -k: each batch in a process of its own, which may fail */
} work = { .folios = 1, .batch = 1 };

/* What was seen; shared with a child that proves its copy. */
static struct seen {
	uint64_t folios, refused, ns, free_ns, wrong;
	uint64_t folio, offset, word; /* the first wrong one */
	uint64_t tags, tags_wrong;
	uint64_t faults; /* of writes to a batch that is there */
} *seen;

static uint64_t begun;
static int file = -1; /* of the batch, if it is of a file */

/* What is done until end() is timed. */
static void begin(void)
{
	begun = now();
}

static void end(void)
{
	seen->ns += now() - begun;
}

/* Frees a batch, which is timed by itself. */
static void unmap(char *room, uint64_t bytes)
{
	uint64_t start = now();

	munmap(room, bytes);
	if (file >= 0)
		close(file);
	file = -1;
	seen->free_ns += now() - start;
}

/* Page by page: a constant count makes these two loops short. */
static void fill(void *at, uint64_t pages)
{
	for (uint64_t *to = at; pages--; to += SMALL / 8)
		for (unsigned int i = 0; i < SMALL / 8; i++)
			to[i] = DIRT;
}

static int is_zero(const uint64_t *page)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < SMALL / 8; i++)
		any |= page[i];
	return !any;
}

static uint64_t flags_of(uint64_t pfn)
{
	static int kpageflags = -1;
	uint64_t flags;

	if (kpageflags < 0)
		kpageflags = opened("/proc/kpageflags", O_RDONLY);
	/* beyond the end of memory there are no flags */
	return pread(kpageflags, &flags, 8, pfn * 8) == 8 ? flags : 0;
}

/* Is this one folio of exactly the requested size, mapped from its start? */
static int is_huge(const char *at)
{
	uint64_t kind = work.hugetlb ? FLAG(HUGE) : FLAG(THP);
	uint64_t head = FLAG(COMPOUND_HEAD), tail = FLAG(COMPOUND_TAIL);
	uint64_t pages = work.bytes / SMALL;
	uint64_t first = pfn_of(at);

	/* nor is it the shared zero page */
	return first && pfn_of(at + work.bytes - SMALL) == first + pages - 1 &&
	       (flags_of(first) & (head | kind | FLAG(ZERO_PAGE))) ==
		       (head | kind) &&
	       (flags_of(first + 1) & tail) &&
	       (flags_of(first + pages - 1) & tail) &&
	       !(flags_of(first + pages) & tail);
}

static uint64_t huge_ones(const char *at, uint64_t folios)
{
	uint64_t huge = 0;

	for (uint64_t i = 0; i < folios; i++)
		huge += is_huge(at + i * work.bytes);
	return huge;
}

#ifdef __aarch64__
#define TAG_SHIFT 56

/* Pointers keep tag 0, and checking is off unless a process asks for it. */
static void set_tag(char *at, uint64_t tag)
{
	asm volatile(".arch_extension memtag\n\tstg %0, [%1]"
		     :
		     : "r"(tag << TAG_SHIFT), "r"(at)
		     : "memory");
}

static uint64_t get_tag(const char *at)
{
	uint64_t got = 0;

	asm volatile(".arch_extension memtag\n\tldg %0, [%1]"
		     : "+r"(got)
		     : "r"(at)
		     : "memory");
	return got >> TAG_SHIFT;
}
#else
#define PROT_MTE 0

static void set_tag(char *at, uint64_t tag)
{
}

static uint64_t get_tag(const char *at)
{
	return 0;
}
#endif

static int tags_prot(void)
{
	if (work.tagged && !PROT_MTE)
		errx(1, "this architecture has no memory tags");
	return work.tagged ? PROT_MTE : 0;
}

/* Like the pattern, tags are left in memory that is freed. */
static void tag(char *at, uint64_t bytes)
{
	for (uint64_t done = 0; work.tagged && done < bytes; done += GRANULE)
		set_tag(at + done, TAG);
}

static void prove_tags(const char *in)
{
	for (uint64_t at = 0; work.tagged && at < work.bytes; at += GRANULE) {
		seen->tags_wrong += get_tag(in + at) != 0;
		seen->tags++;
	}
}

static void note_wrong(uint64_t folio, uint64_t offset, uint64_t word)
{
	if (!seen->wrong++) {
		seen->folio = seen->folios + folio;
		seen->offset = offset;
		seen->word = word;
	}
}

/*
 * struct mark - a word that was stored
 * @at:   its place in the folio, in words
 * @word: what it holds
 */
struct mark {
	uint64_t at, word;
};

static uint64_t expected(uint64_t at, const struct mark *marks, int stored)
{
	for (int m = 0; m < stored; m++)
		if (marks[m].at == at)
			return marks[m].word;
	return 0;
}

/* Every byte of a folio is zero, except in the words that were stored. */
static void prove(const uint64_t *in, uint64_t folio, const struct mark *marks,
		  int stored)
{
	for (uint64_t at = 0; at < work.bytes / 8; at += SMALL / 8) {
		if (is_zero(in + at))
			continue;
		for (uint64_t i = at; i < at + SMALL / 8; i++)
			if (in[i] != expected(i, marks, stored))
				note_wrong(folio, i * 8, in[i]);
	}
	prove_tags((const char *)in);
	/* a page that lost its word may look like one never stored to */
	for (int m = 0; m < stored; m++)
		if (!in[marks[m].at])
			note_wrong(folio, marks[m].at * 8, 0);
}

static void prove_all(const char *at, uint64_t folios, const struct mark *marks,
		      int stored)
{
	for (uint64_t i = 0; i < folios; i++)
		prove((const uint64_t *)(at + i * work.bytes), i, marks, stored);
}

/*
 * Every byte of a batch is zero, but for the word that was stored, if @stored;
 * with @forks the same in a child, which stores to its copies.
 */
static void prove_batch(char *at, uint64_t folios, uint64_t touched, int stored,
			int forks)
{
	uint64_t in_last = (work.bytes - SMALL) / 8 + CHILD_WORD;
	struct mark both[] = { { touched, PARENT }, { in_last, CHILD } };
	pid_t pid = forks ? fork() : 1;

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		prove_all(at, folios, both, 1);
		for (uint64_t i = 0; i < folios; i++)
			((uint64_t *)(at + i * work.bytes))[in_last] = CHILD;
		prove_all(at, folios, both, 2);
		_exit(0);
	}
	if (forks)
		wait_for(pid);
	prove_all(at, folios, both, stored);
}

/*
 * struct way - a way to fault folios in
 * @name: on the command line
 * @page: which page is touched first: 0 the first, 1 the middle, 2 the last
 * @of_file: maps a file of hugetlb memory
 * @fault: faults a batch in; 0 if the kernel has no memory for it. NULL: mmap()
 *	   itself, or fallocate() of the file before it, has allocated already
 * @stores: leaves PARENT in each folio, in the touched page
 * @forks: a child checks the folios and stores to its copies
 * @flags: of mmap()
 * @threads: of the library
 * @after: what becomes of the folios before they are freed
 * @advice: that breaks a page then
 */
struct way {
	const char *name;
	int page;
	int of_file;
	int (*fault)(const struct way *way, char *at, uint64_t folios);
	int stores;
	int forks;
	int flags;
	unsigned int threads;
	void (*after)(const struct way *way, char *at, uint64_t bytes);
	int advice;
};

static uint64_t touched_word(const struct way *way)
{
	uint64_t pages = work.bytes / SMALL;
	uint64_t page[] = { 0, pages / 2, pages - 1 };

	return (page[way->page] * SMALL + 24) / 8;
}

static int touch(const struct way *way, char *at, uint64_t folios)
{
	uint64_t word = touched_word(way);

	for (uint64_t i = 0; i < folios; i++)
		*((volatile uint64_t *)(at + i * work.bytes) + word) = PARENT;
	return 1;
}

static int look(const struct way *way, char *at, uint64_t folios)
{
	uint64_t word = touched_word(way);

	for (uint64_t i = 0; i < folios; i++)
		(void)*((volatile uint64_t *)(at + i * work.bytes) + word);
	return 1;
}

static int populate(const struct way *way, char *at, uint64_t folios)
{
	if (!madvise(at, folios * work.bytes, MADV_POPULATE_WRITE))
		return 1;
	if (!work.seconds || (errno != ENOMEM && errno != EFAULT))
		err(1, "MADV_POPULATE_WRITE");
	return 0;
}

static int library(const struct way *way, char *at, uint64_t folios)
{
	struct bmm_options options = { .size = sizeof(options),
				       .threads = way->threads };
	struct bmm_report report = { .size = sizeof(report) };
	char text[256];

	/* each node has a CPU, which works on the node's own memory */
	if (way->threads > 1)
		bound(at, folios * work.bytes, MPOL_INTERLEAVE, 3);
	if (bmm_populate(at, folios * work.bytes, &options, &report)) {
		bmm_report_text(&report, text, sizeof(text));
		errx(1, "%s", text);
	}
	return 1;
}

/* As a virtual machine starts; it has no CPU, and ends at once. */
static int qemu(const struct way *way, char *at, uint64_t folios)
{
	uint64_t mib = folios * work.bytes >> 20;
	char line[512];

	snprintf(line, sizeof(line),
		 "echo quit | qemu-system-x86_64 -M none,memory-backend=m -S "
		 "-m %luM -object memory-backend-file,id=m,size=%luM,share=on,"
		 "mem-path=/proc/%d/fd/%d -mem-prealloc -accel tcg -nodefaults "
		 "-display none -monitor stdio >/dev/null",
		 mib, mib, getpid(), file);
	if (system(line))
		exit(1);
	return 1;
}

/* From zeros. */
static int uffd_copy(const struct way *way, char *at, uint64_t folios)
{
	int fd = userfaults(at, folios * work.bytes,
			    UFFDIO_REGISTER_MODE_MISSING, 0);
	char *zeros = mapped(work.bytes, MAP_PRIVATE, -1);

	for (uint64_t i = 0; i < folios; i++) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)at + i * work.bytes,
			.src = (uintptr_t)zeros,
			.len = work.bytes,
		};

		IOCTL(fd, UFFDIO_COPY, &copy);
	}
	close(fd);
	munmap(zeros, work.bytes);
	return 1;
}

/* Keeps its pages, dirty, until it is killed. */
static void keep(const struct way *way, char *at, uint64_t bytes)
{
	pause();
}

/* Reserves pages until it is killed. */
static int hold(const struct way *way, char *at, uint64_t folios)
{
	pause();
	return 0;
}

/* Folios that were given up are taken once more. */
static void again(const struct way *way, char *at, uint64_t bytes)
{
	uint64_t folios = bytes / work.bytes;

	touch(way, at, folios);
	prove_batch(at, folios, touched_word(way), 1, 0);
	fill(at, bytes / SMALL);
}

static void dontneed(const struct way *way, char *at, uint64_t bytes)
{
	if (madvise(at, bytes, MADV_DONTNEED))
		err(1, "MADV_DONTNEED");
	again(way, at, bytes);
}

static void punch(const struct way *way, char *at, uint64_t bytes)
{
	if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)bytes))
		err(1, "hole");
	again(way, at, bytes);
	if (ftruncate(file, 0))
		err(1, "truncate");
}

/* A private mapping of the file: its copies are never cleared. */
static void copy_file(const struct way *way, char *at, uint64_t bytes)
{
	char *own = mapped(bytes, MAP_PRIVATE, file);

	fill(own, bytes / SMALL);
	munmap(own, bytes);
}

/* Another mapping of the file, in which minor faults are resolved. */
static void uffd_continue(const struct way *way, char *at, uint64_t bytes)
{
	char *other = mapped(bytes, MAP_SHARED, file);
	int fd = userfaults(other, bytes, UFFDIO_REGISTER_MODE_MINOR,
			    UFFD_FEATURE_MINOR_HUGETLBFS);
	struct uffdio_continue all = { .range = { (uintptr_t)other, bytes } };

	IOCTL(fd, UFFDIO_CONTINUE, &all);
	fill(other, bytes / SMALL);
	close(fd);
	munmap(other, bytes);
}

/* A pipe holds pages when nobody maps them any more. */
static void pin(const struct way *way, char *at, uint64_t bytes)
{
	int pipes[2];

	if (pipe(pipes))
		err(1, "pipe");
	for (uint64_t i = 0; i < 8 && i < bytes / work.bytes; i++) {
		struct iovec one = { at + i * work.bytes, SMALL };

		if (vmsplice(pipes[1], &one, 1, 0) < 0)
			err(1, "vmsplice");
	}
	munmap(at, bytes);
	close(pipes[0]);
	close(pipes[1]);
}

/* Each page to the other node and back; alone, there are free ones on both. */
static void move(const struct way *way, char *at, uint64_t bytes)
{
	for (int node = 1; node >= 0; node--)
		for (uint64_t i = 0; i < bytes; i += work.bytes) {
			void *page = at + i;
			int status = -1;

			syscall(SYS_move_pages, 0, 1UL, &page, &node, &status,
				MPOL_MF_MOVE_ALL);
			if (status != node && !work.apart)
				errx(1, "a page does not move to node %d", node);
		}
}

static void break_page(const struct way *way, char *at, uint64_t bytes)
{
	signal(SIGBUS, ignored);
	if (madvise(at, SMALL, way->advice))
		err(1, "madvise");
	if (way->advice == SOFT_OFFLINE)
		fill(at, bytes / SMALL);
}

#define TOUCHED	     .fault = touch, .stores = 1
#define TOUCHED_FILE TOUCHED, .of_file = 1

static const struct way ways[] = {
	{ "write-first", .page = 0, TOUCHED },
	{ "write-middle", .page = 1, TOUCHED },
	{ "write-last", .page = 2, TOUCHED },
	{ "read", .page = 1, .fault = look },
	{ "madv-populate", .fault = populate },
	{ "map-populate", .flags = MAP_POPULATE },
	{ "fork", .page = 1, TOUCHED, .forks = 1 },
	{ "memfd", .page = 1, TOUCHED_FILE },
	{ "fallocate", .of_file = 1 },
	/* what populate-guest and prezero-* compare */
	{ "touch", TOUCHED },
	{ "madvise", .fault = populate },
	{ "bulkmm-1", .fault = library, .threads = 1 },
	{ "bulkmm-2", .fault = library, .threads = 2 },
	{ "qemu", .of_file = 1, .fault = qemu },
	/* what else becomes of hugetlb pages */
	{ "noreserve", TOUCHED, .flags = MAP_NORESERVE },
	{ "cow", TOUCHED_FILE, .after = copy_file },
	{ "punch", TOUCHED_FILE, .after = punch },
	{ "dontneed", TOUCHED, .after = dontneed },
	{ "pinned", TOUCHED, .after = pin },
	{ "move", TOUCHED, .after = move },
	{ "copy", .fault = uffd_copy },
	{ "copy-kept", .fault = uffd_copy, .after = keep },
	{ "continue", TOUCHED_FILE, .after = uffd_continue },
	{ "soft-offline", TOUCHED, .after = break_page, .advice = SOFT_OFFLINE },
	{ "broken", TOUCHED, .after = break_page, .advice = MADV_HWPOISON },
	{ "reserve", .of_file = 1, .fault = hold },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static const struct way *way_named(const char *name)
{
	for (const struct way *way = ways; way < ways + WAYS; way++)
		if (!strcmp(way->name, name) && (work.hugetlb || !way->of_file))
			return way;
	errx(1, "no way %s", name);
}

/*
 * MAP_POPULATE acts before any madvise() can: for that moment every process may
 * have folios of this size. The only other one that maps new memory meanwhile
 * dirties memory, and has opted out.
 */
static void policy(const char *word)
{
	char file[96];
	int fd;

	snprintf(file, sizeof(file), THP "/hugepages-%lukB/enabled",
		 work.bytes / 1024);
	if (work.bytes == 2 << 20 && access(file, F_OK)) /* 6.1 */
		strcpy(file, THP "/enabled");
	fd = opened(file, O_WRONLY);
	if (write(fd, word, strlen(word)) < 0)
		err(1, "%s", file);
	close(fd);
}

/* Makes the file that a batch is of; 0 if the pool has too little. */
static int make_file(const struct way *way, uint64_t bytes, unsigned int size)
{
	file = memfd_of(bytes, MFD_HUGETLB | size);
	if (way->fault)
		return 1;
	begin();
	if (fallocate(file, 0, 0, (off_t)bytes))
		return 0;
	end();
	return 1;
}

static char *map_at(const struct way *way, char *at, uint64_t bytes)
{
	unsigned int size = (unsigned int)__builtin_ctzl(work.bytes)
			    << MAP_HUGE_SHIFT;
	int flags = MAP_FIXED | way->flags;

	if (way->of_file && !make_file(way, bytes, size))
		return MAP_FAILED;
	if (way->of_file)
		flags |= MAP_SHARED;
	else
		flags |= MAP_PRIVATE | MAP_ANONYMOUS |
			 (work.hugetlb ? MAP_HUGETLB | (int)size : 0) |
			 (work.unreserved ? MAP_NORESERVE : 0);
	return mmap(at, bytes, PROT_READ | PROT_WRITE | tags_prot(), flags,
		    file, 0);
}

/* Map a batch at an aligned address; MAP_FAILED if there is no room for it. */
static char *map(const struct way *way, char *at, uint64_t bytes)
{
	int populates = way->flags & MAP_POPULATE;
	int open_to_all = populates && !work.hugetlb;
	char *got;

	if (open_to_all)
		policy("always");
	if (populates)
		begin();
	got = map_at(way, at, bytes);
	if (populates)
		end();
	if (open_to_all)
		policy("madvise");
	if (got != MAP_FAILED && !work.hugetlb &&
	    madvise(got, bytes, MADV_HUGEPAGE))
		err(1, "MADV_HUGEPAGE");
	return got;
}

/* Proves a mapped batch; returns how many folios of it count. */
static uint64_t mapped_batch(const struct way *way, char *at, uint64_t folios,
			     int plant)
{
	uint64_t huge;
	int given = 1;

	if (way->fault) {
		begin();
		given = way->fault(way, at, folios);
		end();
	}
	if (!given)
		return 0;
	if (work.unreserved)
		seen->faults += faults_of_writes(at, folios * work.bytes);
	if (way->of_file && !way->stores) /* there, and not mapped yet */
		look(way, at, folios);
	huge = huge_ones(at, folios);
	if (huge != folios && !work.seconds)
		errx(1, "%s: only %lu of %lu folios are of %lu KiB", way->name,
		     huge, folios, work.bytes / 1024);
	if (work.faults_only)
		return huge;
	if (plant) {
		at[folios * work.bytes - 1] = 1;
		tag(at + folios * work.bytes - GRANULE, GRANULE);
	}
	prove_batch(at, folios, touched_word(way), way->stores, way->forks);
	fill(at, folios * work.bytes / SMALL);
	tag(at, folios * work.bytes);
	if (way->after)
		way->after(way, at, folios * work.bytes);
	return huge;
}

/* Returns how many folios of a batch count. */
static uint64_t one_batch(const struct way *way, uint64_t folios, int plant)
{
	uint64_t bytes = folios * work.bytes, proved = 0;
	/* room to align it, and no other mapping close to it to merge with */
	char *room = mmap(NULL, bytes + 2 * work.bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((uintptr_t)room + work.bytes - 1) & -work.bytes);

	if (room == MAP_FAILED)
		err(1, "no address space");
	if (map(way, at, bytes) != MAP_FAILED)
		proved = mapped_batch(way, at, folios, plant);
	else if (!work.seconds)
		err(1, "%s: no memory for %lu folios", way->name, folios);
	unmap(room, bytes + 2 * work.bytes);
	seen->folios += proved;
	seen->refused += folios - proved;
	return proved;
}

static int over(uint64_t end)
{
	if (!work.seconds)
		return seen->folios >= work.folios;
	return now() >= end && (!work.until || !access(work.until, F_OK));
}

/* A process for which the pool has too little is killed, or gives up. */
static void one_batch_apart(const struct way *way, uint64_t folios, int plant)
{
	if (!fork()) {
		freopen("/dev/null", "w", stderr);
		one_batch(way, folios, plant);
		_exit(0);
	}
	wait(NULL);
}

/* Faults folios in by all named ways in turn, a batch at a time. */
static void run(const struct way *const *chosen, int n)
{
	uint64_t end = now() + work.seconds * 1000000000UL;

	for (int i = 0; !over(end); i = (i + 1) % n) {
		uint64_t left = work.folios - seen->folios;
		int last = !work.seconds && left <= work.batch;
		uint64_t folios = last ? left : work.batch;

		if (work.apart)
			one_batch_apart(chosen[i], folios, work.plant && last);
		else if (!one_batch(chosen[i], folios, work.plant && last))
			usleep(1000);
	}
}

/*
 * Dirties the kernel's free memory through small pages: they come from
 * everywhere, merge again when freed, and are never cleared by the function
 * whose calls are counted. Rests for most of the time: what is proven takes
 * longer than a round, and an emulated CPU takes one of the host's.
 */
static void dirty_for_ever(uint64_t bytes)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (;;) {
		uint64_t start = now();
		void *at = mapped(bytes, MAP_PRIVATE, -1);

		fill(at, bytes / SMALL);
		munmap(at, bytes);
		usleep((useconds_t)((now() - start) / 1000) * 2);
	}
}

/* [OPTION...] thp|hugetlb KIB WAY..., see struct work; returns 0 if it is not that. */
static int options(int argc, char **argv)
{
	static uint64_t *const numbers[] = {
		['n'] = &work.folios,
		['b'] = &work.batch,
		['t'] = &work.seconds,
	};
	static int *const flags[] = {
		['p'] = &work.plant,  ['f'] = &work.faults_only,
		['m'] = &work.tagged, ['c'] = &work.unreserved,
		['k'] = &work.apart,
	};
	int option;

	while ((option = getopt(argc, argv, "n:b:t:u:pfmck")) != -1) {
		if (option == '?')
			return 0;
		if (option == 'u')
			work.until = optarg;
		else if (optarg)
			*numbers[option] = number(optarg);
		else
			*flags[option] = 1;
	}
	if (!work.batch || argc - optind < 3 || argc - optind - 2 > (int)WAYS)
		return 0;
	work.hugetlb = !strcmp(argv[optind], "hugetlb");
	work.bytes = number(argv[optind + 1]) * 1024;
	return work.bytes >= 2 * SMALL && !(work.bytes & (work.bytes - 1));
}

int main(int argc, char **argv)
{
	const struct way *chosen[WAYS];
	int n = 0;

	if (argc == 3 && !strcmp(argv[1], "dirty"))
		dirty_for_ever(number(argv[2]) << 20);
	if (!options(argc, argv))
		errx(2,
		     "usage: bmmfault dirty MIB, or [-n FOLIOS] [-b BATCH] "
		     "[-t SECONDS] [-u FILE] [-p|-f] [-m] [-c] [-k] thp|hugetlb KIB WAY...");
	for (int i = optind + 2; i < argc; i++)
		chosen[n++] = way_named(argv[i]);
	seen = mapped(SMALL, MAP_SHARED, -1);
	run(chosen, n);
	printf("folios=%lu refused=%lu ns=%lu", seen->folios, seen->refused,
	       seen->ns);
	if (!work.faults_only)
		printf(" wrong=%lu folio=%lu offset=%lu word=0x%016lx tags=%lu tags_wrong=%lu",
		       seen->wrong, seen->folio, seen->offset, seen->word,
		       seen->tags, seen->tags_wrong);
	if (work.unreserved)
		printf(" faults=%lu free_ns=%lu", seen->faults, seen->free_ns);
	putchar('\n');
	return 0;
}
