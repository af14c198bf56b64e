// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Both ways to copy: any backend, length, and alignment of both sides. */
#include "fuzz.h"

static uint8_t ours[AREA] __attribute__((__aligned__(64)));
static uint8_t reference[AREA];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	bool streaming = take(&in, 1) % 2;
	const struct bmm_backend *backend = take_backend(
		&in, streaming ? BMM_COPY_STREAMING : BMM_COPY);
	size_t to = (size_t)take(&in, 1) % SHIFT;
	size_t from = (size_t)take(&in, 1) % SHIFT;
	size_t len = (size_t)take(&in, 2) % (AREA - 2 * SHIFT), i;
	uint8_t *source = malloc(from + len + 1);

	must(source);
	for (i = 0; i < from + len; i++)
		source[i] = (uint8_t)(i * 101 % 241 + 7);
	canaries(ours);
	canaries(reference);
	(streaming ? backend->copy_streaming :
		     backend->copy)(ours + to, source + from, len);
	bmm_drain_stores();
	for (i = 0; i < len; i++)
		reference[to + i] = source[from + i];
	must(!memcmp(ours, reference, AREA));
	free(source);
	return 0;
}
