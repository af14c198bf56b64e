// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bmm_populate() reports in a guest, built with the library itself, for
 * memory that only such a guest has, and what became of that:
 *	bmmpool KIND MIB OPTION...
 *
 * KIND of memory: 4k, thp, 2m or 1g of hugetlb, or a file or DAX device by its
 * path. OPTION:
 *	threads=N node=N        of bmm_options
 *	bind=N                  mbind() the range to a node
 *	cpu=N                   begin on a CPU, not pinned to it
 *	halves                  its first half to node 0, the other to node 1
 *	interleave              its pages to both in turn
 *	read                    read every page first
 *	compact                 insist on huge pages (BMM_COMPACT)
 *	poison                  break the page in the middle
 */
#include <dirent.h>
#include <sys/stat.h>

#include "bulkmm.h"
#include "guest.h"
#include "measure.h"

#define PARTS 8
#define ALIGN (1UL << 30) /* no huge page is split */

struct memory {
	char *at;
	size_t len;
};

static char *memory_of(const char *kind, size_t len)
{
	int fd, shift = *kind == '1' ? 30 : 21;
	struct stat st;

	if (!strcmp(kind, "4k"))
		return advised(len, ALIGN, MADV_NOHUGEPAGE);
	if (!strcmp(kind, "thp"))
		return advised(len, ALIGN, MADV_HUGEPAGE);
	if (*kind != '/')
		return mapped(len,
			      MAP_PRIVATE | MAP_NORESERVE | MAP_HUGETLB |
				      shift << MAP_HUGE_SHIFT,
			      -1);
	fd = opened(kind, O_RDWR | O_CREAT);
	if (fstat(fd, &st) || (S_ISREG(st.st_mode) && ftruncate(fd, (off_t)len)))
		err(1, "%s", kind);
	return mapped(len, MAP_SHARED, fd);
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
	else if (!strcmp(word, "compact"))
		options->flags |= BMM_COMPACT;
	else if (!strcmp(word, "poison"))
		poison(m);
	else
		errx(1, "no option %s", word);
}

/* Of huge pages, on all of the machine. */
static unsigned long failed_compactions(void)
{
	return number_in("/proc/vmstat", "compact_fail %lu");
}

/* Whether no mapping is advised to have small pages, other than by the kind. */
static int advice_restored(const char *kind)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[256];
	int small = 0;

	while (file && fgets(line, sizeof(line), file))
		small |= !strncmp(line, "VmFlags", 7) && strstr(line, " nh");
	if (file)
		fclose(file);
	return !small || !strcmp(kind, "4k");
}

static void say_sets(char *text)
{
	for (unsigned int set = 0; set < 64; set++)
		if (sets >> set & 1)
			text += sprintf(text, "%x.", set);
	*text = 0;
}

int main(int argc, char **argv)
{
	struct bmm_options asked = { .size = sizeof(asked),
				     .progress = look_at_threads };
	struct bmm_report said = { .size = sizeof(said) };
	char nodes[PARTS + 1], cpus[256] = "";
	uint64_t before = 0, after = 0, taken, compacted;
	struct memory m;

	if (argc < 3)
		errx(2, "usage: bmmpool KIND MIB [OPTION...]");
	m.len = number(argv[2]) << 20;
	m.at = memory_of(argv[1], m.len);
	for (char **option = argv + 3; *option; option++)
		prepare(&m, *option, &asked);
	syscall(SYS_sched_getaffinity, 0, sizeof(before), &before);
	compacted = failed_compactions();
	if (bmm_populate(m.at, m.len, &asked, &said) != said.error)
		errx(1, "a report of another error");
	compacted = failed_compactions() - compacted;
	syscall(SYS_sched_getaffinity, 0, sizeof(after), &after);
	m.len = (size_t)((char *)said.reached - m.at);
	taken = faults_of_writes(m.at, m.len);
	memory_nodes(&m, nodes, PARTS);
	say_sets(cpus);
	printf("error=%d cause=%d done=%zu reached=%zu failed_len=%zu "
	       "threads=%u faults=%lu wrong=%lu nodes=%s. cpus=%s same=%d "
	       "ns=%lu huge=%zu small=%zu compacted=%lu restored=%d\n",
	       -said.error, said.cause, said.done, m.len, said.failed_len,
	       said.threads, taken, memory_wrong(&m), nodes, cpus,
	       before == after, said.ns, said.huge, said.small, compacted,
	       advice_restored(argv[1]));
	return 0;
}
