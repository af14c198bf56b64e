// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lengths beyond 4 GiB: real ones, over the same 2 MiB of memory again and
 * again, before a page that may not be touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bmm.h"

#define SPAN   ((size_t)2 << 20)
#define MORE   ((size_t)64 << 10) /* all that a length cut to 32 bits leaves */
#define LENGTH (((size_t)4 << 30) + MORE)

/* Where it is written, and where the memory can be seen once. */
struct alias {
	char *base, *once;
};

static void *must(void *p)
{
	if (p == MAP_FAILED) {
		perror("large: mmap");
		exit(3);
	}
	return p;
}

static struct alias alias(const char *name)
{
	int file = memfd_create(name, 0), access = PROT_READ | PROT_WRITE;
	struct alias a;
	size_t at, left;

	if (file < 0 || ftruncate(file, (off_t)SPAN)) {
		perror("large: memfd_create");
		exit(3);
	}
	a.once = must(mmap(NULL, SPAN, access, MAP_SHARED, file, 0));
	a.base = must(mmap(NULL, LENGTH + SPAN, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	for (at = 0; at < LENGTH; at += SPAN) {
		left = LENGTH - at < SPAN ? LENGTH - at : SPAN;
		must(mmap(a.base + at, left, access, MAP_SHARED | MAP_FIXED,
			  file, 0));
	}
	close(file);
	return a;
}

static int clear(const struct alias *to, void (*clear_it)(void *dst, size_t len))
{
	size_t i;

	memset(to->once, 0xa5, SPAN);
	clear_it(to->base, LENGTH);
	for (i = 0; i < SPAN; i++)
		if (to->once[i])
			return 1;
	return 0;
}

static int copy(const struct alias *to, const struct alias *from,
		void (*copy_it)(void *dst, const void *src, size_t len))
{
	size_t i;

	for (i = 0; i < SPAN; i++)
		from->once[i] = (char)(i * 37 % 251 + 1);
	memset(to->once, 0, SPAN);
	copy_it(to->base, from->base, LENGTH);
	bmm_drain();
	return memcmp(to->once, from->once, SPAN) != 0;
}

/* The last records stay; their first words count from the first record on. */
static int stamp(const struct alias *to)
{
	const uint64_t first[8] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	const uint64_t next[8] = { 8, 7, 7, 7, 7, 7, 7, 7 };
	const size_t spans = LENGTH / SPAN, records = SPAN / 64;
	struct bmm_image image;
	int wrong = 0;
	size_t i, w;

	bmm_image_init(&image, first, next, 64);
	bmm_stamp(to->base, &image, LENGTH / 64);
	bmm_drain();
	for (i = 0; i < records; i++) {
		uint64_t word[8];
		size_t span = i < MORE / 64 ? spans : spans - 1;

		memcpy(word, to->once + i * 64, 64);
		wrong |= word[0] != 7 + span * records + i;
		for (w = 1; w < 8; w++)
			wrong |= word[w] != 7;
	}
	return wrong;
}

/* Whether it has the operation: in force from now on. */
static bool forced(const char *name, enum bmm_op op)
{
	return !bmm_backend_select(op, name, strlen(name));
}

static int exercise(const char *name, const struct alias *to,
		    const struct alias *from)
{
	int wrong = 0;

	if (forced(name, BMM_STAMP))
		wrong += stamp(to);
	if (forced(name, BMM_COPY))
		wrong += copy(to, from, bmm_copy);
	if (forced(name, BMM_COPY_STREAMING))
		wrong += copy(to, from, bmm_copy_streaming);
	if (forced(name, BMM_CLEAR))
		wrong += clear(to, bmm_clear);
	if (forced(name, BMM_CLEAR_STREAMING))
		wrong += clear(to, bmm_clear_streaming);
	printf("%s: %d wrong\n", name, wrong);
	return wrong;
}

int main(void)
{
	const struct alias to = alias("to"), from = alias("from");
	const struct bmm_backend *backend;
	int wrong = 0;
	size_t i;

	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (!backend->supported || backend->supported())
			wrong += exercise(backend->name, &to, &from);
	return wrong != 0;
}
