// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How many threads may work on ranges, on which nodes, and how they begin. */
#include <stdlib.h>
#include <unistd.h>

#include "stage.h"

#define HUGE_SIZE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

/* Spreads threads over the nodes of the memory, and where the caller may run. */
static void spread_threads(struct workers *workers)
{
	unsigned int i;

	for (i = 0; i < workers->segments_nr; i++)
		CPU_OR_S(sizeof(workers->nodes), workers->nodes.bits,
			 workers->nodes.bits, workers->segments[i].nodes.bits);
	workers->bound = SET_COUNT(&workers->nodes);
	if (!workers->bound)
		return;
	workers->self.home = node_of_worker(workers, 0);
	cpus_allowed(&workers->allowed);
	/* Where threads of other nodes help, the caller's is not theirs. */
	if (workers->node >= 0 && SET_COUNT(&workers->nodes) > 1)
		workers->prefer = workers->node;
}

static size_t slices_of(const struct segment *segment, size_t size)
{
	if (size < segment->map.page)
		size = segment->map.page;
	return (segment->end - segment->next + size - 1) / size;
}

/* Of those that are worth a thread, how many there may be. */
static unsigned int count_slices(const struct workers *workers)
{
	size_t count = 0;
	unsigned int i;

	for (i = 0; i < workers->segments_nr; i++)
		count += slices_of(&workers->segments[i], LEAST);
	return count < THREADS_MAX ? (unsigned int)count : THREADS_MAX;
}

/* Whether there are several huge pages, each of which is more than a slice. */
static bool is_wide(const struct workers *workers)
{
	const struct segment *segment = workers->segments;
	size_t count = 0;
	unsigned int i;

	for (i = 0; i < workers->segments_nr; i++, segment++)
		if (segment->map.page > SLICE_MAX)
			count += slices_of(segment, SLICE_MAX);
	return count > 1;
}

/* How many threads may work, the caller included. */
unsigned int limit_threads(struct workers *workers)
{
	struct cpus cpus = workers->allowed;
	unsigned int most = workers->bound ?
				    cpus_of_nodes(&workers->nodes, &cpus) :
				    cpus_allowed(&cpus);

	if (!most)
		return 1;
	most = lower(most, cpus_quota());
	if (workers->staging && most < READERS)
		most = READERS;
	if (workers->staging && workers->staging->buffers)
		most = lower(most, BUFFERS);
	most = lower(most, count_slices(workers));
	return lower(THREADS_MAX, lower(most, workers->options.threads));
}

/* With base pages of 4 KiB it is the same on every processor. */
size_t huge_page(void)
{
	char text[32];
	size_t size;

	if (sysconf(_SC_PAGESIZE) == 4096 ||
	    !kernel_text(HUGE_SIZE, text, sizeof(text)))
		return LEAST;
	size = strtoul(text, NULL, 10);
	return size && !(size & (size - 1)) ? size : LEAST;
}

/* How many, limit_threads() says if one thread turns out to be too few. */
void allow_threads(struct workers *workers)
{
	unsigned int most = workers->options.threads;

	if (workers->len < SMALL)
		return;
	if (workers->bound) /* even a single thread is bound to a node */
		spread_threads(workers);
	if (most == 1)
		return;
	workers->passes = workers->options.ready;
	if (is_all_cold(workers))
		return;
	workers->huge = huge_page();
	workers->wide = is_wide(workers);
	scaling_start(&workers->scaling, workers->staging ? READERS : 1,
		      lower(THREADS_MAX, most));
}
