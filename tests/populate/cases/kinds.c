// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Memory of every kind, as it is, and as others left it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

/* the last for threads, with an odd end */
static const size_t sizes[] = { PAGE,		5 * PAGE, MIB,
				7 * MIB + PAGE, 63 * MIB, 64 * MIB + 3 * PAGE };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void fill_one(char *p, size_t len)
{
	struct bmm_report report;

	p[0] = 1;
	p[len - 1] = 2;
	p[len / 2] = 3;
	report = all_of(p, len, NULL);
	check(report.threads >= 1 && report.size == sizeof(report));
	check(len >= 64 * MIB || report.threads == 1);
	check(is_there(p, len));
	check(p[len - 1] == 2 && p[len / 2] == 3 && (p[0] == 1 || len == PAGE));
	p[0] = p[len - 1] = p[len / 2] = 0;
	check(is_zero(p, len));
	check(!bmm_populate(p, len, NULL, NULL)); /* all of it there already */
	munmap(p, len);
}

CASE(kinds, HERE | TOUCHED | MAPS | ENTRIES)
{
	size_t i, len;
	char *huge;

	for (i = 0; i < SIZES; i++) {
		len = sizes[i];
		huge = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		madvise(huge, len, MADV_HUGEPAGE);
		fill_one(huge, len);
		fill_one(anonymous(len), len);
		fill_one(map(len, MAP_SHARED | MAP_ANONYMOUS, -1), len);
		fill_one(map(len, MAP_PRIVATE, memfd(len)), len);
		fill_one(map(len, MAP_SHARED, memfd(len)), len);
	}
}

/* What the kernel may drop when memory is scarce (MAP_DROPPABLE, Linux 6.11). */
CASE(droppable, HERE | ENTRIES)
{
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, 0x08 | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		exit(SKIPPED);
	madvise(p, LEN, MADV_NOHUGEPAGE);
	all_of(p, LEN, NULL);
	check(is_there(p, LEN) && is_zero(p, LEN));
}

/* A sealed mapping can be populated; only what would change it is refused. */
CASE(sealed, HERE)
{
	char *p = anonymous(LEN);

	if (syscall(462, p, LEN, 0UL)) /* mseal(), Linux 6.10 */
		exit(SKIPPED);
	all_of(p, LEN, NULL);
	check(is_there(p, LEN));
}

CASE(on_node, HERE)
{
	struct bmm_options options = OPTIONS(.flags = BMM_ON_NODE, .node = 0);
	int before = -1, after = -1;
	size_t i;
	char *p;

	for (i = 0; i < SIZES; i++) {
		p = anonymous(sizes[i]);
		check(!bmm_populate(p, sizes[i], &options, NULL));
		check(is_there(p, sizes[i]));
		munmap(p, sizes[i]);
	}
	syscall(SYS_get_mempolicy, &after, NULL, 0, NULL, 0);
	check(after == 0 && before == -1); /* as at the start of a program */
}

/* A range of many mappings, of more kinds than the library tells apart. */
CASE(many_mappings, HERE)
{
	size_t i;
	char *p = anonymous(LEN);

	for (i = 0; i < 90; i++)
		check(mmap(p + i * MIB, MIB / 2, PROT_READ | PROT_WRITE,
			   MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1,
			   0) != MAP_FAILED);
	check_populated(p, LEN);
	check(!bmm_populate(p, LEN, NULL, NULL));
}

/* Bytes that this process has read of files. */
static size_t bytes_read(void)
{
	size_t sum;

	if (sscanf(text_of("/proc/self/io"), "rchar: %zu", &sum) != 1)
		exit(SKIPPED);
	return sum;
}

/* All of maps is read, and that once; smaps takes a walk of page tables. */
CASE(many_mappings_maps, HERE)
{
	size_t before;

	forbid_query();
	many_mappings();
	before = bytes_read();
	many_mappings();
	before = bytes_read() - before;
	check(before < 4 * strlen(text_of("/proc/self/maps")));
}

/*
 * Of memory that has no file system, or tmpfs, the kernel is asked again for
 * the first page of each slice alone.
 */
CASE(memory_alone, HERE | MAPS)
{
	size_t i;
	int key = shmget(IPC_PRIVATE, LEN, 0600);
	char *maps[] = { map(LEN, MAP_SHARED | MAP_ANONYMOUS, -1),
			 map(LEN, MAP_SHARED, memfd(LEN)),
			 map(LEN, MAP_SHARED, removed(LEN)),
			 key < 0 ? NULL : shmat(key, NULL, 0) };

	shmctl(key, IPC_RMID, NULL);
	for (i = 0; i < 4; i++) {
		if (!maps[i])
			continue;
		check(!bmm_populate(maps[i], LEN, NULL, NULL));
		asked = 0;
		check(!bmm_populate(maps[i], LEN, NULL, NULL));
		check(asked <= LEN / (2 * MIB) * PAGE);
		check(is_there(maps[i], LEN));
		munmap(maps[i], LEN);
	}
}

CASE(reading, HERE)
{
	struct bmm_options options = OPTIONS(.flags = BMM_READ);
	struct bmm_report report = REPORT;
	char *p = map(LEN, MAP_SHARED, memfd(LEN));

	mprotect(p, LEN, PROT_READ);
	check(!all_of(p, LEN, &options).touched);
	forbid(SYS_madvise, 2, ~0U, 22, 0, EINVAL);
	check(bmm_populate(p, LEN, &options, &report) == -EOPNOTSUPP);
	check(report.cause == BMM_CAUSE_KERNEL);
}

CASE(clears, HERE)
{
	static const size_t lens[] = { 1, 100, 5 * MIB + 3, 97 * MIB + 5 };
	struct bmm_report report = REPORT;
	size_t i, len;
	char *p;

	cpus_made = 4;
	for (i = 0; i < 4; i++) {
		len = lens[i];
		p = anonymous(len + 2 * PAGE);
		memset(p, 0xa5, len + 2 * PAGE);
		check(!bmm_clear_parallel(p + 77, len, NULL, &report));
		check(report.done == len && report.reached == p + 77 + len);
		check(is_zero(p + 77, len));
		check((p[76] & 255) == 0xa5 && (p[77 + len] & 255) == 0xa5);
		munmap(p, len + 2 * PAGE);
	}
	check(bmm_clear_parallel((char *)8, SIZE_MAX, NULL, NULL) == -EINVAL);
}
