// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pages that are resident, and yet not to be had; calls that only seem to work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define WP_ASYNC (1 << 15) /* UFFD_FEATURE_WP_ASYNC: Linux 6.7 */
#define WP_SHMEM (1 << 12) /* UFFD_FEATURE_WP_HUGETLBFS_SHMEM: Linux 5.19 */

static char *resident(size_t len)
{
	char *p = map(len, MAP_SHARED, memfd(len));

	memset(p, 1, len);
	return p;
}

/* From here on the mapping has a key; it is not joined to what precedes it. */
static void bar_by_key(char *p, size_t len, unsigned int rights)
{
	int key = pkey_alloc(0, rights);

	if (key < 0) {
		puts("no protection keys");
		exit(SKIPPED);
	}
	check(!pkey_mprotect(p, len, PROT_READ | PROT_WRITE, key));
}

/* The same where the processor has no keys. */
static void bar_as_by_key(char *p, size_t len, unsigned int rights)
{
	(void)rights;
	madvise(p, len, MADV_DONTDUMP);
	barred_from = (uintptr_t)p;
}

static void half_barred(size_t len, unsigned int rights, uint32_t flags,
			void (*bar)(char *, size_t, unsigned int))
{
	struct bmm_options options = OPTIONS(.flags = flags);
	struct bmm_report report = REPORT;
	char *p = resident(len);

	bar(p + len / 2, len / 2, rights);
	check(bmm_populate(p, len, &options, &report) == -EINVAL);
	check(report.failed == p + len / 2 && report.reached == p + len / 2);
	barred_from = SIZE_MAX;
	munmap(p, len);
}

static void all_barred(void (*bar)(char *, size_t, unsigned int))
{
	static const size_t lens[] = { 4 * MIB, 32 * MIB, LEN };
	size_t i;

	for (i = 0; i < 3; i++) {
		half_barred(lens[i], PKEY_DISABLE_WRITE, 0, bar);
		half_barred(lens[i], PKEY_DISABLE_ACCESS, BMM_READ, bar);
	}
}

CASE(protection_keys, HERE | MAPS | ENTRIES)
{
	all_barred(bar_by_key);
}

CASE(protection_keys_made_up, HERE | MAPS | ENTRIES)
{
	all_barred(bar_as_by_key);
}

/* A mapping whose write protection the kernel itself lifts at a write. */
static int guards(char *p, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = WP_ASYNC | WP_SHMEM };
	struct uffdio_register all = {
		.range = { (uintptr_t)p, len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &all)) {
		puts("no userfaultfd that guards shared memory");
		exit(SKIPPED);
	}
	return fd;
}

static void guard(int fd, char *p, size_t len)
{
	struct uffdio_writeprotect pages = {
		.range = { (uintptr_t)p, len },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	check(!ioctl(fd, UFFDIO_WRITEPROTECT, &pages));
}

CASE(write_protection, HERE | MAPS | ENTRIES)
{
	char *p = resident(LEN);
	int fd = guards(p, LEN);
	size_t i;

	guard(fd, p, LEN);
	check_populated(p, LEN);
	for (i = PAGE; i < LEN; i += 61 * PAGE) /* some, and no slice's first */
		guard(fd, p + i, PAGE);
	check_populated(p, LEN);
	guard(fd, p + LEN / 2, LEN / 2);
	check_populated(p, LEN);
	asked = 0; /* and none */
	check_populated(p, LEN);
	check(asked <= LEN / (2 * MIB) * PAGE);
}

/* One that is registered, and one beside it that is not. */
CASE(write_protection_of_half, HERE | ENTRIES)
{
	char *p = resident(LEN);
	int fd = guards(p + LEN / 2, LEN / 2);

	guard(fd, p + LEN / 2, LEN / 2);
	check_populated(p, LEN);
}

/* What madvise() does not do is done page by page. */
static void populate_without(uint32_t advice, uint32_t mask, uint32_t least,
			     unsigned int error)
{
	static const size_t lens[] = { 3 * PAGE, 5 * MIB, LEN };
	struct bmm_options reading = OPTIONS(.flags = BMM_READ);
	struct bmm_report report = REPORT;
	char *p[3];
	size_t i;

	for (i = 0; i < 3; i++)
		p[i] = anonymous(lens[i]);
	forbid(SYS_madvise, 2, mask, advice, least, error);
	for (i = 0; i < 3; i++) {
		check(all_of(p[i], lens[i], NULL).touched);
		check(is_there(p[i], lens[i]));
		check(bmm_populate(p[i], lens[i], &reading, NULL) ==
		      -EOPNOTSUPP);
		munmap(p[i] + PAGE, PAGE);
		check(bmm_populate(p[i], lens[i], NULL, &report) == -ENOMEM);
		check(report.failed == p[i] + PAGE);
	}
}

/* It says yes to everything, and does nothing. */
CASE(ignored_advice, HERE)
{
	populate_without(0, 0, 0, 0);
}

/* It says no to every advice, unless there is nothing to do. */
CASE(refused_advice, HERE)
{
	populate_without(0, 0, 1, EINVAL);
}

/* It does all, also where the probe's page is mapped (dosemu, Wine). */
CASE(low_memory, HERE)
{
	struct bmm_options reading = OPTIONS(.flags = BMM_READ);
	char *p = anonymous(LEN), *low;

	low = mmap((char *)PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (low == MAP_FAILED) {
		puts("nothing may be mapped there");
		exit(SKIPPED);
	}
	all_of(p, LEN, &reading);
	check(!all_of(p, LEN, NULL).touched);
}
