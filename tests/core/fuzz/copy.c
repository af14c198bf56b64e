// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Both ways to copy: any backend, length, and alignment of both sides; to move,
 * whatever the ranges share; and to fill.
 */
#include "fuzz.h"

static uint8_t ours[AREA] __attribute__((__aligned__(64)));
static uint8_t reference[AREA];

static void copy(struct input *in, bool streaming)
{
	const struct bmm_backend *backend = take_backend(
		in, streaming ? BMM_COPY_STREAMING : BMM_COPY);
	size_t to = (size_t)take(in, 1) % SHIFT;
	size_t from = (size_t)take(in, 1) % SHIFT;
	size_t len = (size_t)take(in, 2) % (AREA - 2 * SHIFT), i;
	uint8_t *source = malloc(from + len + 1);

	must(source);
	for (i = 0; i < from + len; i++)
		source[i] = (uint8_t)(i * 101 % 241 + 7);
	(streaming ? backend->copy_streaming :
		     backend->copy)(ours + to, source + from, len);
	memcpy(reference + to, source + from, len);
	free(source);
}

static void move(struct input *in, bool streaming)
{
	size_t to = (size_t)take(in, 2) % (AREA / 2);
	size_t from = (size_t)take(in, 2) % (AREA / 2);
	size_t len = (size_t)take(in, 2) % (AREA / 2);

	(streaming ? bmm_move_streaming : bmm_move)(ours + to, ours + from, len);
	memmove(reference + to, reference + from, len);
}

static void fill(struct input *in, bool streaming)
{
	size_t to = (size_t)take(in, 1) % SHIFT;
	size_t size = (size_t)take(in, 2) % (AREA / 2), i;
	size_t len = (size_t)take(in, 2) % (AREA - 2 * SHIFT);
	uint8_t *pattern = malloc(size + 1);

	must(pattern);
	for (i = 0; i < size; i++)
		pattern[i] = (uint8_t)(i * 101 % 241 + 7);
	must(!(streaming ? bmm_fill : bmm_fill_cached)(ours + to, pattern, size,
						       len) == (size > 0));
	for (i = 0; size && i < len; i++)
		reference[to + i] = pattern[i % size];
	free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const what[])(struct input *in,
				    bool streaming) = { copy, copy, move, fill };
	struct input in = { data, size };
	size_t how = (size_t)take(&in, 1);

	canaries(ours);
	canaries(reference);
	what[how / 2 % 4](&in, how % 2);
	bmm_drain_stores();
	must(!memcmp(ours, reference, AREA));
	return 0;
}
