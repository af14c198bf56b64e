// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Learning from arbitrary memory: it may refuse, it may not read outside, and
 * what it accepts it must be able to write again.
 */
#include "fuzz.h"
#include "learn.h"

static struct bmm_layout layout;

static void geometry(struct bmm_geometry *g, struct input *in)
{
	g->record = (size_t)(take(in, 1) % 18) * 8;
	g->records = (size_t)take(in, 1) % 16;
	g->stride = g->record * g->records + (size_t)(take(in, 1) % 24) * 8;
}

static void stamp_again(const uint64_t *base, size_t bytes, size_t units,
			const struct bmm_backend *backend)
{
	uint64_t *copy = malloc(bytes);
	const struct bmm_geometry *g = &layout.geometry;
	size_t u, used = g->record * g->records;

	must(copy);
	memcpy(copy, base, bytes);
	for (u = 0; u < units; u++)
		memset((char *)copy + u * g->stride, 0x5a, used);
	bmm_layout_stamp(&layout, backend, copy, 0, units);
	bmm_drain_stores();
	must(!memcmp(copy, base, bytes));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	const struct bmm_backend *backend = take_backend(&in, BMM_STAMP);
	size_t units = (size_t)take(&in, 1) % 8, i, bytes;
	struct bmm_geometry g;
	uint64_t *base;

	geometry(&g, &in);
	bytes = units * g.stride;
	base = malloc(bytes + 1);
	must(base);
	for (i = 0; i < bytes / 8; i++)
		base[i] = take(&in, 1);
	if (!bmm_learn(&layout, base, &g, units))
		stamp_again(base, bytes, units, backend);
	free(base);
	return 0;
}
