// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A pool that is resident before its first use, with huge pages if the system
 * has them: no page fault, no clearing, no wrong node later on. A failure is
 * reported exactly, and what is resident can be used all the same.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <bulkmm.h>

#define POOL (256UL << 20)

/* Called several times a second; any return value but 0 would cancel. */
static int progress(void *context, size_t done, size_t len)
{
	(void)context;
	fprintf(stderr, "%3zu %%\r", done * 100 / len);
	return 0;
}

int main(void)
{
	struct bmm_options options = BMM_OPTIONS_INIT(.progress = progress);
	struct bmm_report report = BMM_REPORT_INIT;
	char text[256];
	void *pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pool == MAP_FAILED) {
		perror("populate: mmap");
		return 1;
	}
	madvise(pool, POOL, MADV_HUGEPAGE); /* a hint */
	if (bmm_populate(pool, POOL, &options, &report)) {
		bmm_report_text(&report, text, sizeof(text));
		fprintf(stderr, "populate: %s\n", text);
		return 1;
	}
	fprintf(stderr, "%.1f GB/s, %u threads\n",
		(double)report.done / (double)report.ns, report.threads);
	printf("all %zu bytes are there\n", report.done);
	return 0;
}
