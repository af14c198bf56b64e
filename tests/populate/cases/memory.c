// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Memory for a case, and what of it is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cases.h"

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/*
 * Page faults of a write to each page, which changes nothing. A sanitizer would
 * have memory of its own for each.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) long
faults_of(char *p, size_t len)
{
	volatile char *page = p;
	long before;
	size_t i;

	before = faults();
	before = faults(); /* the first may have one of its own */
	for (i = 0; i < len; i += PAGE)
		page[i] = page[i];
	return faults() - before;
}

bool is_there(char *p, size_t len)
{
	return faults_of(p, len) <= 2;
}

bool is_zero(const char *p, size_t len)
{
	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

char *map(size_t len, int flags, int fd)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(SKIPPED);
	}
	return p;
}

char *anonymous(size_t len)
{
	char *p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

int memfd(size_t len)
{
	int fd = memfd_create("cases", 0);

	check(fd >= 0 && !ftruncate(fd, (off_t)len));
	return fd;
}
