// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Learning from arbitrary memory, for libFuzzer: it may refuse, it may not read
 * outside, and what it accepts it must be able to write again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "learn.h"

struct input {
	const uint8_t *data;
	size_t size;
};

static struct bmm_layout layout;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next byte of input; zeroes behind its end. */
static size_t take(struct input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}

static const struct bmm_backend *take_backend(struct input *in)
{
	const struct bmm_backend *backend;
	size_t n = 0;

	while (bmm_backend_at(n))
		n++;
	backend = bmm_backend_at(take(in) % n);
	return bmm_backend_can(backend, BMM_STAMP) ? backend : &bmm_generic;
}

/* Asserts whatever the build: a fuzzer that does not stop finds nothing. */
static void must(bool condition)
{
	if (!condition)
		abort();
}

static void geometry(struct bmm_geometry *g, struct input *in)
{
	g->record = take(in) % 18 * 8;
	g->records = take(in) % 16;
	g->stride = g->record * g->records + take(in) % 24 * 8;
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
	const struct bmm_backend *backend = take_backend(&in);
	size_t units = take(&in) % 8, i, bytes;
	struct bmm_geometry g;
	uint64_t *base;

	geometry(&g, &in);
	bytes = units * g.stride;
	base = malloc(bytes + 1);
	must(base);
	for (i = 0; i < bytes / 8; i++)
		base[i] = take(&in);
	if (!bmm_learn(&layout, base, &g, units))
		stamp_again(base, bytes, units, backend);
	free(base);
	return 0;
}
