// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses bmm_populate() in a guest, built with the library itself: the ways to
 * populate side by side, each counted (visit), and what the library reports for
 * memory that only such a guest has (report).
 *
 * KIND of memory: 4k, thp, 2m, 32m or 1g of hugetlb, or a file or DAX device by
 * its path.
 *
 * A visit: memory is made resident by one way, while the work of the guest's
 * kernel is counted, and every byte is checked. Memory is freed dirty, so that
 * memory that is not cleared shows.
 */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bulkmm.h"
#include "guest.h"
#include "measure.h"

#define DIRT  0xa5
#define PARTS 8
#define ALIGN (1UL << 30) /* no huge page is split */

struct memory {
	char *at;
	size_t len;
	size_t page; /* its page size: what is touched or faulted in at once */
	int fd;	     /* of the file that backs it, -1: none */
};

/* Of hugetlb pages; 0: of none. */
static unsigned int shift_of(const char *kind)
{
	if (!strcmp(kind, "2m"))
		return 21;
	if (!strcmp(kind, "32m"))
		return 25;
	return strcmp(kind, "1g") ? 0 : 30;
}

static size_t page_of(const char *kind)
{
	if (!strcmp(kind, "thp"))
		return 2UL << 20;
	return shift_of(kind) ? 1UL << shift_of(kind) : SMALL;
}

static unsigned int huge_flags(const char *kind, unsigned int flag)
{
	return shift_of(kind) ? flag | shift_of(kind) << MAP_HUGE_SHIFT : 0;
}

/* The file that a shared mapping needs: a memfd, or one given by its path. */
static void memory_file(struct memory *m, const char *kind, size_t len)
{
	struct stat st;

	if (*kind != '/') {
		m->fd = memfd_of(len, huge_flags(kind, MFD_HUGETLB));
		return;
	}
	m->fd = opened(kind, O_RDWR | O_CREAT);
	if (fstat(m->fd, &st) ||
	    (S_ISREG(st.st_mode) && ftruncate(m->fd, (off_t)len)))
		err(1, "%s", kind);
}

static void memory_map(struct memory *m, const char *kind, size_t len, int more)
{
	int flags = m->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *room = mmap(NULL, len + ALIGN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		err(1, "address space");
	if (m->fd < 0)
		flags |= (int)huge_flags(kind, MAP_HUGETLB) | MAP_NORESERVE;
	m->len = len;
	m->page = page_of(kind);
	m->at = room + (-(uintptr_t)room & (ALIGN - 1));
	m->at = mmap(m->at, len, PROT_READ | PROT_WRITE,
		     flags | MAP_FIXED | more, m->fd, 0);
	if (m->at == MAP_FAILED)
		err(1, "mmap");
	if (!strcmp(kind, "thp"))
		madvise(m->at, len, MADV_HUGEPAGE);
	else if (m->fd < 0)
		madvise(m->at, len, MADV_NOHUGEPAGE);
}

/* Counts words that are not zero. */
static unsigned long memory_wrong(const struct memory *m)
{
	const uint64_t *word = (const uint64_t *)m->at;
	unsigned long wrong = 0;

	for (size_t i = 0; i < m->len / sizeof(*word); i++)
		wrong += word[i] != 0;
	return wrong;
}

static long faults(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Counts page faults of a write to each page of the first @len bytes. */
static long memory_faults(const struct memory *m, size_t len)
{
	volatile char *page = m->at;
	long before = faults();

	for (size_t i = 0; i < len; i += SMALL)
		page[i] = page[i];
	return faults() - before;
}

/* For each of @parts: the node that all its pages are on; x: several nodes. */
static void memory_nodes(const struct memory *m, char *text, int parts)
{
	size_t each = m->len / (size_t)parts;

	for (int i = 0; i < parts; i++) {
		text[i] = 0;
		for (size_t at = 0; at < each; at += SMALL) {
			void *page = m->at + (size_t)i * each + at;
			int node = -1;
			char one;

			syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0);
			one = node < 0 ? '-' : (char)('0' + node);
			text[i] = text[i] && text[i] != one ? 'x' : one;
		}
	}
	text[parts] = 0;
}

/* Begin and end on different CPUs: then the work of all CPUs is counted. */
static void begin(void)
{
	run_on(0);
	bmm_mark(BMM_MARK_RECORD);
	bmm_mark(BMM_MARK_BEGIN(0));
	run_on(-1);
}

static void end(void)
{
	run_on(1);
	bmm_mark(BMM_MARK_END(0));
	run_on(-1);
}

/* Counted by itself. */
static void free_all(const struct memory *m)
{
	run_on(0);
	bmm_mark(BMM_MARK_BEGIN(1));
	munmap(m->at, m->len);
	close(m->fd);
	bmm_mark(BMM_MARK_END(1));
	run_on(-1);
}

static void touch(const struct memory *m)
{
	for (size_t i = 0; i < m->len; i += m->page)
		*(volatile char *)(m->at + i) = 0;
}

static unsigned int library(const struct memory *m, unsigned int threads)
{
	struct bmm_options options = { .size = sizeof(options),
				       .threads = threads };
	struct bmm_report report = { .size = sizeof(report) };
	char text[256];

	/* each node has a CPU, which works on the node's own memory */
	if (threads > 1)
		bound(m->at, m->len, MPOL_INTERLEAVE, 3);
	if (bmm_populate(m->at, m->len, &options, &report)) {
		bmm_report_text(&report, text, sizeof(text));
		errx(1, "%s", text);
	}
	return report.threads;
}

/* As a virtual machine starts; it has no CPU, and ends at once. */
static void qemu(const struct memory *m)
{
	size_t mib = m->len >> 20;
	char line[512];

	snprintf(line, sizeof(line),
		 "echo quit | qemu-system-x86_64 -M none,memory-backend=m -S "
		 "-m %zuM -object memory-backend-file,id=m,size=%zuM,share=on,"
		 "mem-path=/proc/%d/fd/%d -mem-prealloc -accel tcg -nodefaults "
		 "-display none -monitor stdio >/dev/null",
		 mib, mib, getpid(), m->fd);
	if (system(line))
		exit(1);
}

/* Returns the number of threads. */
static unsigned int populate(struct memory *m, const char *kind, const char *way)
{
	if (!strncmp(way, "bulkmm-", 7))
		return library(m, (unsigned int)atoi(way + 7));
	if (!strcmp(way, "qemu"))
		qemu(m);
	else if (!strcmp(way, "touch"))
		touch(m);
	else if (!strcmp(way, "map-populate"))
		memory_map(m, kind, m->len, MAP_POPULATE);
	else if (!strcmp(way, "fallocate") &&
		 fallocate(m->fd, 0, 0, (off_t)m->len))
		err(1, "fallocate");
	else if ((!strcmp(way, "madvise") || !strcmp(way, "corrupted")) &&
		 madvise(m->at, m->len, MADV_POPULATE_WRITE))
		err(1, "MADV_POPULATE_WRITE");
	return 1;
}

/* KIND MIB WAY */
static void visit(char **word)
{
	const char *kind = word[0], *way = word[2];
	size_t len = number(word[1]) << 20;
	struct memory m = { .fd = -1 };
	unsigned int threads;
	unsigned long wrong;
	uint64_t ns;
	long taken;

	if (!strcmp(way, "fallocate") || !strcmp(way, "qemu"))
		memory_file(&m, kind, len);
	memory_map(&m, kind, len, 0);
	begin();
	ns = now();
	threads = populate(&m, kind, way);
	ns = now() - ns;
	end();
	taken = memory_faults(&m, len);
	if (!strcmp(way, "corrupted")) /* on purpose: the check must see it */
		m.at[len / 2] = 1;
	wrong = memory_wrong(&m);
	memset(m.at, DIRT, len);
	free_all(&m);
	printf("bytes=%zu ns=%lu wrong=%lu faults=%ld threads=%u\n", len, ns,
	       wrong, taken, threads);
}

/* The CPU masks that threads were seen with, of 6 CPUs; bit N is mask N. */
static uint64_t sets;

/* Called repeatedly by one of the threads: how all of them are bound. */
static int look_at_threads(void *context, size_t done, size_t len)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *one;
	uint64_t set;

	while (tasks && (one = readdir(tasks))) {
		set = 0;
		if (atoi(one->d_name) > 0 &&
		    syscall(SYS_sched_getaffinity, atoi(one->d_name),
			    sizeof(set), &set) > 0 &&
		    set < 64)
			sets |= 1UL << set;
	}
	if (tasks)
		closedir(tasks);
	return 0;
}

static void poison(const struct memory *m)
{
	size_t at = m->len / 2;

	signal(SIGBUS, ignored);
	m->at[at] = 1;
	if (madvise(m->at + at, SMALL, MADV_HWPOISON))
		err(1, "MADV_HWPOISON");
}

static void read_all(const struct memory *m)
{
	for (size_t i = 0; i < m->len; i += SMALL)
		(void)*(volatile char *)(m->at + i);
}

static void prepare(const struct memory *m, const char *word,
		    struct bmm_options *options)
{
	if (sscanf(word, "threads=%u", &options->threads) == 1)
		return;
	if (sscanf(word, "node=%u", &options->node) == 1)
		options->flags |= BMM_ON_NODE;
	else if (!strncmp(word, "bind=", 5))
		bound(m->at, m->len, MPOL_BIND, 1UL << atoi(word + 5));
	else if (!strncmp(word, "cpu=", 4)) {
		run_on(atoi(word + 4));
		run_on(-1);
	} else if (!strcmp(word, "interleave"))
		bound(m->at, m->len, MPOL_INTERLEAVE, 3);
	else if (!strcmp(word, "halves")) {
		bound(m->at, m->len / 2, MPOL_BIND, 1);
		bound(m->at + m->len / 2, m->len / 2, MPOL_BIND, 2);
	} else if (!strcmp(word, "read"))
		read_all(m);
	else if (!strcmp(word, "poison"))
		poison(m);
	else
		errx(1, "no option %s", word);
}

static void say_sets(char *text)
{
	for (unsigned int set = 0; set < 64; set++)
		if (sets >> set & 1)
			text += sprintf(text, "%x.", set);
	*text = 0;
}

/*
 * KIND MIB OPTION...: what bmm_populate() reports, and what became of the
 * memory.
 *
 *	threads=N node=N        of bmm_options
 *	bind=N                  mbind() the range to a node
 *	cpu=N                   begin on a CPU, not pinned to it
 *	halves                  its first half to node 0, the other to node 1
 *	interleave              its pages to both in turn
 *	read                    read every page first
 *	poison                  break the page in the middle
 */
static void report(char **word)
{
	const char *kind = word[0];
	size_t good, len = number(word[1]) << 20;
	struct bmm_options asked = { .size = sizeof(asked),
				     .progress = look_at_threads };
	struct bmm_report said = { .size = sizeof(said) };
	char nodes[PARTS + 1], cpus[256] = "";
	struct memory m = { .fd = -1 };
	uint64_t before = 0, after = 0;
	long taken;

	if (*kind == '/')
		memory_file(&m, kind, len);
	memory_map(&m, kind, len, 0);
	for (char **option = word + 2; *option; option++)
		prepare(&m, *option, &asked);
	syscall(SYS_sched_getaffinity, 0, sizeof(before), &before);
	if (bmm_populate(m.at, len, &asked, &said) != said.error)
		errx(1, "a report of another error");
	syscall(SYS_sched_getaffinity, 0, sizeof(after), &after);
	good = (size_t)((char *)said.reached - m.at);
	taken = memory_faults(&m, good);
	m.len = good;
	memory_nodes(&m, nodes, PARTS);
	say_sets(cpus);
	printf("error=%d cause=%d done=%zu reached=%zu failed_len=%zu "
	       "threads=%u faults=%ld wrong=%lu nodes=%s. cpus=%s same=%d\n",
	       -said.error, said.cause, said.done, good, said.failed_len,
	       said.threads, taken, memory_wrong(&m), nodes, cpus,
	       before == after);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "visit KIND MIB WAY", 3, 3, visit },
		{ "report KIND MIB [OPTION...]", 2, 7, report },
	};

	return RUN_ONE(commands, argc, argv);
}
