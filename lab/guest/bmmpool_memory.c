// SPDX-License-Identifier: GPL-2.0-only
/* Memory: 4k, thp, 2m, 32m or 1g of hugetlb, or a file or DAX device by its path. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "bmmpool.h"

#define ALIGN (1UL << 30) /* no huge page is split */

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
void memory_file(struct memory *m, const char *kind, size_t len)
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

void memory_map(struct memory *m, const char *kind, size_t len, int more)
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
unsigned long memory_wrong(const struct memory *m)
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
long memory_faults(const struct memory *m, size_t len)
{
	volatile char *page = m->at;
	long before = faults();

	for (size_t i = 0; i < len; i += SMALL)
		page[i] = page[i];
	return faults() - before;
}

/* For each of @parts: the node that all its pages are on; x: several nodes. */
void memory_nodes(const struct memory *m, char *text, int parts)
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
