// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every operation of every backend against generic C, and moves and fills
 * against the simplest loop, at both ends of memory between two pages that may
 * not be touched, every byte of which is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bmm.h"
#include "drain.h"
#include "lines.h"

#define PAGE 4096U
#define ROOM (4 * PAGE)

/* What is written, what should be, and what is copied. */
static char *ours, *reference, *source;
static char canaries[ROOM];
static unsigned long done;

static char *guarded(void)
{
	char *p = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, ROOM, PROT_READ | PROT_WRITE))
		exit(3);
	return p + PAGE;
}

static void prepare(void)
{
	uint64_t state = 1;
	size_t i;

	ours = guarded();
	reference = guarded();
	source = guarded();
	for (i = 0; i < ROOM; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		source[i] = (char)(state >> 40);
		canaries[i] = (char)(state >> 50 | 1);
	}
	memcpy(ours, canaries, ROOM);
	memcpy(reference, canaries, ROOM);
}

static int compare(size_t at, size_t len)
{
	int wrong = memcmp(ours, reference, ROOM) != 0;

	done++;
	if (wrong)
		memcpy(ours, canaries, ROOM);
	memcpy(ours + at, canaries + at, len);
	memcpy(reference + at, canaries + at, len);
	return wrong;
}

static size_t place(size_t len, size_t distance, bool end)
{
	return end ? ROOM - len - distance : distance;
}

typedef void copy_fn(void *dst, const void *src, size_t len);
typedef void clear_fn(void *dst, size_t len);

/* The source touches a guard as well, at any distance modulo a line. */
static int extent(copy_fn *copy, clear_fn *clear, size_t len, size_t distance,
		  bool end)
{
	size_t at = place(len, distance, end),
	       from = place(len, done % 67, end);

	if (copy) {
		copy(ours + at, source + from, len);
		bmm_generic.copy(reference + at, source + from, len);
	} else {
		clear(ours + at, len);
		bmm_generic.clear(reference + at, len);
	}
	bmm_drain_stores();
	return compare(at, len);
}

static int extents(copy_fn *copy, clear_fn *clear)
{
	static const size_t more[] = { 511,  512,  513,	 1000, 2048, 2056,
				       2176, 4096, 4104, 5000, 8191, 9008 };
	size_t i, distance, len;
	int wrong = 0;

	if (!copy && !clear)
		return 0;
	for (i = 0; i < 200 + sizeof(more) / sizeof(more[0]); i++) {
		len = i < 200 ? i : more[i - 200];
		for (distance = 0; distance <= 64; distance++) {
			wrong += extent(copy, clear, len, distance, true);
			wrong += extent(copy, clear, len, distance, false);
		}
	}
	return wrong;
}

static int stamp(const struct bmm_backend *backend, size_t size, size_t count,
		 const void *next, bool end)
{
	size_t len = size * count, at = place(len, done % 5 * 8, end);
	struct bmm_image image;

	bmm_image_init(&image, source, next, size);
	backend->stamp(ours + at, &image, count);
	bmm_drain_stores();
	bmm_generic.stamp(reference + at, &image, count);
	return compare(at, len);
}

static int stamps(const struct bmm_backend *backend)
{
	size_t size, count;
	int wrong = 0;

	for (size = BMM_RECORD_MIN; size <= BMM_RECORD_MAX; size += 8)
		for (count = 0; count < 40; count++) {
			wrong += stamp(backend, size, count, NULL, true);
			wrong += stamp(backend, size, count, NULL, false);
			wrong += stamp(backend, size, count, source + 8, true);
			wrong += stamp(backend, size, count, source + 8, false);
		}
	return wrong;
}

static const size_t lengths[] = { 0,	1,    7,    8,	  63,	64,   65,
				  127,	128,  129,  191,  255,	256,  321,
				  1000, 2047, 2048, 2049, 2111, 2200, 4095,
				  4096, 4160, 4161, 6000, 8191, 9008 };

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* @gap: from the source to the destination; one of them touches a guard */
static int move(long gap, size_t len, bool end)
{
	size_t apart = (size_t)(gap < 0 ? -gap : gap);
	size_t first = place(len + apart, done % 67, end);
	size_t to = gap < 0 ? first : first + apart;
	size_t from = gap < 0 ? first + apart : first;
	int wrong;

	memmove(reference + to, reference + from, len);
	bmm_move(ours + to, ours + from, len);
	wrong = memcmp(ours, reference, ROOM) != 0;
	memcpy(ours + to, canaries + to, len);
	bmm_move_streaming(ours + to, ours + from, len);
	bmm_drain_stores();
	return wrong + compare(to, len);
}

static int moves(void)
{
	static const long gaps[] = { 255,  256,	 1000, 2047, 2048, 2049, 2500,
				     4000, 4095, 4096, 4097, 5000, 6008 };
	int wrong = 0;
	size_t i, l;
	long gap;

	for (l = 0; l < LENGTHS; l++)
		for (i = 0; i < 131 + sizeof(gaps) / sizeof(gaps[0]); i++) {
			gap = i < 131 ? (long)i : gaps[i - 131];
			wrong += move(gap, lengths[l], done % 2);
			wrong += move(-gap, lengths[l], done % 2);
		}
	printf("moves: %d wrong\n", wrong);
	return wrong;
}

/* What is filled, and lines of it that bypass the cache in part only. */
static uintptr_t filled, filled_end;
static int torn;

void __real_bmm_copy_streaming(void *dst, const void *src, size_t len);
void __wrap_bmm_copy_streaming(void *dst, const void *src, size_t len);
void __wrap_bmm_copy_streaming(void *dst, const void *src, size_t len)
{
	uintptr_t at = (uintptr_t)dst, end = at + len;

	torn += (at % BMM_LINE && at != filled) ||
		(end % BMM_LINE && end != filled_end);
	__real_bmm_copy_streaming(dst, src, len);
}

static int fill(int (*how)(void *dst, const void *pattern, size_t size,
			   size_t len),
		size_t size, size_t len)
{
	size_t at = place(len, done % 67, done % 2), i;
	int wrong;

	for (i = 0; i < len; i++)
		reference[at + i] = source[i % size];
	filled = (uintptr_t)ours + at;
	filled_end = filled + len;
	torn = 0;
	wrong = how(ours + at, source, size, len);
	bmm_drain_stores();
	return !!wrong + !!torn + compare(at, len);
}

static int fills(void)
{
	static const size_t more[] = { 191, 192,  255,	256,  512, 513,
				       600, 1001, 4095, 4096, 5000 };
	int wrong = !bmm_fill(ours, source, 0, 1) +
		    !bmm_fill_cached(ours, source, 0, 1);
	size_t i, l, size;

	for (l = 0; l < LENGTHS; l++)
		for (i = 0; i < 130 + sizeof(more) / sizeof(more[0]); i++) {
			size = i < 130 ? i + 1 : more[i - 130];
			wrong += fill(bmm_fill, size, lengths[l]);
			wrong += fill(bmm_fill_cached, size, lengths[l]);
		}
	printf("fills: %d wrong\n", wrong);
	return wrong;
}

static int exercise(const struct bmm_backend *backend)
{
	int wrong = 0;

	if (backend->stamp)
		wrong += stamps(backend);
	wrong += extents(backend->copy, NULL);
	wrong += extents(backend->copy_streaming, NULL);
	wrong += extents(NULL, backend->clear);
	wrong += extents(NULL, backend->clear_streaming);
	printf("%s: %d wrong\n", backend->name, wrong);
	return wrong;
}

/* "overlap" breaks a promise: a debug build stops here. */
int main(int argc, char **argv)
{
	const struct bmm_backend *backend;
	int wrong = 0;
	size_t i;

	prepare();
	if (argc > 1 && !strcmp(argv[1], "overlap")) {
		bmm_copy_streaming(ours + 8, ours, 64);
		return 0;
	}
	for (i = 0; (backend = bmm_backend_at(i)); i++)
		if (!backend->supported || backend->supported())
			wrong += exercise(backend);
#ifdef __x86_64__
	if (bmm_host_has(BMM_CPU_AVX2)) /* where AVX-512 is preferred, too */
		wrong += exercise(bmm_avx2);
#elif defined(__aarch64__)
	/* values of DCZID_EL0 that no emulator shows */
	wrong += bmm_zva_block(0) != 4 || bmm_zva_block(4) != 64 ||
		 bmm_zva_block(9) != 2048 || bmm_zva_block(0x14) ||
		 bmm_zva_block(0x10);
#endif
	wrong += moves() + fills();
	printf("%lu extents, %d wrong in all\n", done, wrong);
	return wrong != 0;
}
