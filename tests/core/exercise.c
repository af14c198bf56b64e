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
#include "drain.h"
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
	char *first = exact(size + 1), *second = exact(size + 1);
	void *ours = exact(size * count), *reference = exact(size * count);
	struct bmm_image image;
	int wrong;

	/* records of any alignment */
	bmm_image_init(&image, first + 1, number() % 2 ? second + 1 : NULL,
		       size);
	backend->stamp(ours, &image, count);
	bmm_drain_stores();
	bmm_generic.stamp(reference, &image, count);
	wrong = memcmp(ours, reference, size * count) != 0;
	free(first);
	free(second);
	free(ours);
	free(reference);
	return wrong;
}

static int copied(size_t len, size_t shift, size_t skew,
		  void (*copy)(void *dst, const void *src, size_t len))
{
	char *from = exact(len + shift + skew), *to = exact(len + shift);
	int wrong;

	from += skew;
	copy(to + shift, from + shift, len);
	bmm_drain_stores();
	wrong = memcmp(to + shift, from + shift, len) != 0;
	free(from - skew);
	free(to);
	return wrong;
}

static int copies(const struct bmm_backend *backend, size_t len, size_t shift)
{
	size_t skew = len % 3;
	int wrong = 0;

	if (backend->copy)
		wrong += copied(len, shift, skew, backend->copy);
	if (backend->copy_streaming)
		wrong += copied(len, shift, skew, backend->copy_streaming);
	return wrong;
}

static int zeroed(size_t len, size_t shift, void (*clear)(void *dst, size_t len))
{
	char *p = exact(len + shift), before = shift ? p[shift - 1] : 0;
	int wrong = 0;
	size_t i;

	clear(p + shift, len);
	bmm_drain_stores();
	for (i = 0; i < len; i++)
		wrong |= p[shift + i] != 0;
	wrong |= shift && p[shift - 1] != before;
	free(p);
	return wrong;
}

static int clears(const struct bmm_backend *backend, size_t len, size_t shift)
{
	int wrong = 0;

	if (backend->clear)
		wrong += zeroed(len, shift, backend->clear);
	if (backend->clear_streaming)
		wrong += zeroed(len, shift, backend->clear_streaming);
	return wrong;
}

/* Units of which only the first word of a record steps, with a gap. */
static int learn(const struct bmm_backend *backend, size_t records)
{
	const struct bmm_geometry geometry = { .record = 64,
					       .records = records,
					       .stride = records * 64 + 8 };
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
		bmm_drain_stores();
		wrong = memcmp(base, copy, units * geometry.stride) != 0;
	}
	free(base);
	free(copy);
	return wrong;
}

static int stamps(const struct bmm_backend *backend)
{
	size_t size, n;
	int wrong = 0;

	for (size = BMM_RECORD_MIN; size <= BMM_RECORD_MAX; size += 8)
		for (n = 0; n < 20; n++)
			wrong += stamp(backend, size, n);
	for (n = 1; n < 40; n++)
		if (n != 2 && n != 3) /* too few records to see a tail */
			wrong += learn(backend, n);
	return wrong;
}

static int exercise(const struct bmm_backend *backend)
{
	int wrong = backend->stamp ? stamps(backend) : 0;
	size_t len, shift;

	for (len = 0; len < 300; len++)
		for (shift = 0; shift < 16; shift++) {
			wrong += clears(backend, len, shift);
			wrong += copies(backend, len, shift);
		}
	wrong += copies(backend, 9000, 8) + copies(backend, 9001, 5);
	wrong += clears(backend, 9001, 5);
	printf("%s: %d wrong\n", backend->name, wrong);
	return wrong;
}

/* Breaks a promise: a debug build stops here. */
static void overlap(void)
{
	char *p = exact(128);

	bmm_copy_streaming(p + 8, p, 64);
	free(p);
}

int main(int argc, char **argv)
{
	const struct bmm_backend *backend;
	int wrong = 0;
	size_t i;

	if (argc > 1 && !strcmp(argv[1], "overlap")) {
		overlap();
		return 0;
	}

	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (!backend->supported || backend->supported())
			wrong += exercise(backend);
	return wrong != 0;
}
