// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Drives the core with buffers of the exact size, to be run under
 * AddressSanitizer and UndefinedBehaviorSanitizer. Stores that are written in
 * assembly are not instrumented; for those the guard pages of the other tests
 * are there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bmm.h"
#include "learn.h"

static uint64_t state = 1;

static uint64_t number(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 16 ^ state << 32;
}

static void *exact(size_t bytes)
{
	char *p = malloc(bytes ? bytes : 1);
	size_t i;

	if (!p)
		exit(3);
	for (i = 0; i < bytes; i++)
		p[i] = (char)number();
	return p;
}

static int stamp(const struct bmm_backend *backend, size_t size, size_t count)
{
	const struct bmm_backend *generic = bmm_backend_find("generic", 7);
	void *first = exact(size), *second = exact(size);
	void *ours = exact(size * count), *reference = exact(size * count);
	struct bmm_image image;
	int wrong;

	bmm_image_init(&image, first, number() % 2 ? second : NULL, size);
	backend->stamp(ours, &image, count);
	backend->drain();
	generic->stamp(reference, &image, count);
	wrong = memcmp(ours, reference, size * count) != 0;
	free(first);
	free(second);
	free(ours);
	free(reference);
	return wrong;
}

static int copy(const struct bmm_backend *backend, size_t len, size_t shift)
{
	char *from = exact(len + shift), *to = exact(len + shift);
	int wrong;

	backend->copy(to + shift, from + shift, len);
	backend->drain();
	wrong = memcmp(to + shift, from + shift, len) != 0;
	free(from);
	free(to);
	return wrong;
}

/* Units of which only the first word of a record steps, with a gap. */
static int learn(const struct bmm_backend *backend, size_t records)
{
	const struct bmm_geometry geometry = { 64, records, records * 64 + 8 };
	const size_t learned = BMM_LEARN_UNITS, units = learned + 4;
	char *base = exact(units * geometry.stride);
	char *copy = exact(units * geometry.stride);
	struct bmm_layout layout;
	size_t u, r;
	int wrong;

	for (u = 0; u < units; u++)
		for (r = 0; r < records; r++) {
			char *at = base + u * geometry.stride + r * 64;
			uint64_t word = u * 4096 + (r < 3 ? r * r : 99);

			memcpy(at, &word, 8);
			memset(at + 8, 7, 56);
		}
	memcpy(copy, base, units * geometry.stride);
	wrong = bmm_learn(&layout, base, &geometry, learned) != 0;
	if (!wrong) {
		bmm_layout_stamp(&layout, backend, base, learned, 4);
		backend->drain();
		wrong = memcmp(base, copy, units * geometry.stride) != 0;
	}
	free(base);
	free(copy);
	return wrong;
}

static int exercise(const struct bmm_backend *backend)
{
	size_t size, n;
	int wrong = 0;

	for (size = BMM_RECORD_MIN; size <= BMM_RECORD_MAX; size += 8)
		for (n = 0; n < 20; n++)
			wrong += stamp(backend, size, n);
	for (size = 0; size < 300; size++)
		for (n = 0; n < 16; n++)
			wrong += copy(backend, size, n);
	for (n = 1; n < 40; n++)
		if (n != 2 && n != 3) /* too few records to see a tail */
			wrong += learn(backend, n);
	printf("%s: %d wrong\n", backend->name, wrong);
	return wrong;
}

int main(void)
{
	int wrong = 0;
	size_t i;

	for (i = 0; i < bmm_backends_nr; i++)
		if (bmm_backends[i]->supported())
			wrong += exercise(bmm_backends[i]);
	return wrong != 0;
}
