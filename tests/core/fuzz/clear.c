// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Both ways to clear: any backend, length and alignment. */
#include "fuzz.h"

static uint8_t ours[AREA] __attribute__((__aligned__(64)));
static uint8_t reference[AREA];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	bool streaming = take(&in, 1) % 2;
	const struct bmm_backend *backend = take_backend(
		&in, streaming ? BMM_CLEAR_STREAMING : BMM_CLEAR);
	size_t offset = (size_t)take(&in, 1) % SHIFT;
	size_t len = (size_t)take(&in, 2) % (AREA - 2 * SHIFT), i;

	canaries(ours);
	canaries(reference);
	(streaming ? backend->clear_streaming : backend->clear)(ours + offset,
								len);
	bmm_drain_stores();
	for (i = 0; i < len; i++)
		reference[offset + i] = 0;
	must(!memcmp(ours, reference, AREA));
	return 0;
}
