// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* With a C library that is not glibc: populated by two threads, and an error. */
#include <bulkmm.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define LEN ((size_t)512 << 20)

int main(void)
{
	struct bmm_options options = BMM_OPTIONS_INIT(.threads = 2);
	struct bmm_report report = BMM_REPORT_INIT;
	unsigned char there[16];
	char text[256], *p;
	size_t i;

	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED || bmm_populate(p, LEN, &options, &report))
		return 1;
	for (i = 0; i < 16; i++)
		if (mincore(p + LEN / 16 * i, 1, &there[i]) || !there[i])
			return 2;
	printf("threads: %u\n", report.threads);
	munmap(p + LEN / 2, LEN / 2);
	if (bmm_populate(p, LEN, &options, &report) != -ENOMEM)
		return 3;
	bmm_report_text(&report, text, sizeof(text));
	puts(text);
	bmm_clear(p, LEN / 2);
	return 0;
}
