// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses bmm_populate() in a guest, built with the library itself: the ways to
 * populate side by side, each counted (visit), and what the library reports for
 * memory that only such a guest has (report).
 *
 * A visit: memory is made resident by one way, while the work of the guest's
 * kernel is counted, and every byte is checked. Memory is freed dirty, so that
 * memory that is not cleared shows.
 */
#include "bmmpool.h"
#include "measure.h"

#define DIRT 0xa5

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

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "visit KIND MIB WAY", 3, 3, visit },
		{ "report KIND MIB [OPTION...]", 2, 7, report },
	};

	return RUN_ONE(commands, argc, argv);
}
