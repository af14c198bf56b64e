/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fuzz.h - what the libFuzzer targets share
 *
 * A target reads numbers from its input, does the operation with a backend on
 * one area and by the simplest loop on another, and compares both areas whole:
 * stores in assembly are not instrumented, bytes around the extent are.
 */
#ifndef BMM_FUZZ_H
#define BMM_FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bmm.h"
#include "drain.h"

#define AREA  16384U
#define SHIFT 64U /* offsets are below it, and so much stays free behind */

struct input {
	const uint8_t *data;
	size_t size;
};

/* The next @bytes of input as a number; zeroes behind its end. */
static inline uint64_t take(struct input *in, size_t bytes)
{
	uint64_t value = 0;

	for (; bytes; bytes--) {
		value = value << 8 | (in->size ? *in->data : 0);
		in->data += in->size != 0;
		in->size -= in->size != 0;
	}
	return value;
}

static inline const struct bmm_backend *take_backend(struct input *in,
						     enum bmm_op op)
{
	const struct bmm_backend *backend;
	size_t n = 0;

	while (bmm_backend_at(n))
		n++;
	backend = bmm_backend_at((size_t)take(in, 1) % n);
	return bmm_backend_can(backend, op) ? backend : &bmm_generic;
}

/* Asserts whatever the build: a fuzzer that does not stop finds nothing. */
static inline void must(bool condition)
{
	if (!condition)
		abort();
}

static inline void canaries(uint8_t *area)
{
	size_t i;

	for (i = 0; i < AREA; i++)
		area[i] = (uint8_t)(i * 37 % 251 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
