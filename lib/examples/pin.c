// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A pool that is pinned piece by piece while the rest is still being populated:
 * what a driver's registration takes overlaps with the work, and holds the
 * driver's lock for one piece at a time. Here mlock() stands for it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <bulkmm.h>

#define POOL  (128UL << 20)
#define PIECE (16UL << 20)

/* On the thread that called bmm_populate(), one piece at a time. */
static int pin(void *context, void *addr, size_t len)
{
	size_t *pinned = context;

	if (mlock(addr, len)) {
		perror("pin: mlock");
		return 1; /* stops the rest */
	}
	*pinned += len;
	return 0;
}

int main(void)
{
	size_t pinned = 0;
	struct bmm_options options = BMM_OPTIONS_INIT(.ready = pin,
						      .context = &pinned,
						      .piece = PIECE);
	struct bmm_report report = BMM_REPORT_INIT;
	struct rlimit limit = { 0 };
	char text[256];
	void *pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pool == MAP_FAILED) {
		perror("pin: mmap");
		return 1;
	}
	if (bmm_populate(pool, POOL, &options, &report)) {
		bmm_report_text(&report, text, sizeof(text));
		fprintf(stderr, "pin: %s\n", text);
		getrlimit(RLIMIT_MEMLOCK, &limit);
		fprintf(stderr,
			"pin: %zu bytes are pinned; the limit is %lu (ulimit -l)\n",
			pinned, (unsigned long)limit.rlim_cur);
		return 1;
	}
	printf("%zu bytes are pinned, in pieces of %zu\n", pinned, PIECE);
	return 0;
}
