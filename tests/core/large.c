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

#include "../../bench/library/bench.h"

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

/* The last records stay; their first words count from the first record on. */
static int stamped(const struct alias *to)
{
	const size_t spans = LENGTH / SPAN, records = SPAN / 64;
	int wrong = 0;
	size_t i, w;

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

static int exercise(const char *name, const struct alias *to,
		    const struct alias *from)
{
	const uint64_t first[8] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	const uint64_t next[8] = { 8, 7, 7, 7, 7, 7, 7, 7 };
	struct bmm_image image;
	struct bmm_job job = { .dst = to->base,
			       .src = from->base,
			       .image = &image,
			       .len = LENGTH };
	unsigned int op;
	int wrong = 0;

	bmm_image_init(&image, first, next, 64);
	for (op = 0; op < BMM_OPS; op++) {
		job.op = (enum bmm_op)op;
		if (bmm_backend_select(job.op, name, strlen(name)))
			continue;
		memset(to->once, 0xa5, SPAN);
		job_call(&job);
		bmm_drain();
		if (job.op == BMM_STAMP)
			wrong += stamped(to);
		else if (job.op == BMM_COPY || job.op == BMM_COPY_STREAMING)
			wrong += memcmp(to->once, from->once, SPAN) != 0;
		else
			wrong += !bytes_are(to->once, SPAN, 0);
	}
	printf("%s: %d wrong\n", name, wrong);
	return wrong;
}

int main(void)
{
	const struct alias to = alias("to"), from = alias("from");
	const struct bmm_backend *backend;
	int wrong = 0;
	size_t i;

	for (i = 0; i < SPAN; i++)
		from.once[i] = (char)(i * 37 % 251 + 1);
	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (!backend->supported || backend->supported())
			wrong += exercise(backend->name, &to, &from);
	return wrong != 0;
}
