// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs and blocks, against their definitions. */
#include "fuzz.h"

#define ITEMS 200U

static unsigned long get(const void *ctx, size_t i)
{
	return ((const unsigned long *)ctx)[i];
}

static size_t run_simply(const unsigned long *item, size_t n, unsigned long step)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (item[i] != item[i - 1] + step)
			break;
	return n ? i : 0;
}

/* Items that follow each other, but where the input says otherwise. */
static void runs(struct input *in)
{
	size_t n = (size_t)take(in, 1) % (ITEMS + 1), i;
	unsigned long step = take(in, 1) % 2 ? 1 : (unsigned long)take(in, 8);
	unsigned long *item = calloc(n + 1, sizeof(*item));
	unsigned long now = (unsigned long)take(in, 8);
	size_t odd = (size_t)take(in, 1);

	must(item);
	for (i = 0; i < n; i++, now += step)
		item[i] = i == odd ? (unsigned long)take(in, 8) : now;
	must(bmm_run_length_step(item, n, step) == run_simply(item, n, step));
	must(bmm_run_length_get(get, item, n) == run_simply(item, n, 1));
	must(bmm_run_length(item, n) == run_simply(item, n, 1));
	free(item);
}

static bool fits(unsigned int order, unsigned long vpn, unsigned long pfn,
		 unsigned long pages)
{
	unsigned long size = 1UL << order;

	return !(vpn % size) && !(pfn % size) && pages >= size;
}

static void blocks(struct input *in)
{
	unsigned long vpn = (unsigned long)take(in, 8);
	unsigned long pfn = (unsigned long)take(in, 8);
	unsigned long pages = (unsigned long)take(in, 8);
	unsigned long orders = (unsigned long)take(in, 8);
	unsigned int o, wanted = 0;

	for (o = 0; o < 8 * sizeof(long); o++)
		if (orders >> o & 1 && fits(o, vpn, pfn, pages))
			wanted = o;
	must(bmm_block_order(vpn, pfn, pages, orders) == wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	if (take(&in, 1) % 2)
		runs(&in);
	else
		blocks(&in);
	return 0;
}
