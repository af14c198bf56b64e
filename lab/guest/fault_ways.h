/* SPDX-License-Identifier: GPL-2.0-only */
/* fault_ways.h - every way to fault in, change and give up the folios of a batch */
#ifndef FAULT_WAYS_H
#define FAULT_WAYS_H

#include "fault_proof.h"

#define SOFT_OFFLINE 101 /* MADV_SOFT_OFFLINE */

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

#endif
