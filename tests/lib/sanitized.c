// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a sanitizer says of a program that uses the library, which is built
 * without. The streaming operations never end in libc, which sanitizers see.
 *
 *	sanitized good      no report
 *	sanitized write     clears a byte behind an object
 *	sanitized read      copies a byte behind an object
 *	sanitized unknown   looks at a copy of uninitialised bytes
 *	sanitized race-CALL two threads, of which one calls what writes
 *	sanitized race-read two threads, of which one copies what the other  writes
 */
#include <bulkmm.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 8192U

static int looks(const char *bytes)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		if (bytes[i] != bytes[0])
			return puts("differ");
	return bytes[0];
}

/* What the library says of itself, and of a range. */
static int says(void)
{
	struct bmm_report report;
	char text[400], copy[4];

	report.size = sizeof(report);
	if (bmm_populate(NULL, 0, NULL, &report) || report.error ||
	    report.failed_len || report.threads)
		return 1;
	if (bmm_clear_parallel(text, sizeof(text), NULL, &report) ||
	    report.done != sizeof(text) || report.slow_len)
		return 1;
	bmm_backend_list(BMM_CLEAR, 4096, text, sizeof(text));
	if (strchr(text, '!'))
		return 1;
	bmm_backend_selection(BMM_CLEAR, text, sizeof(text));
	if (strchr(text, '!') || bmm_environment_error(copy, sizeof(copy)) ||
	    *copy || bmm_report_text(&report, copy, sizeof(copy)) || *copy)
		return 1;
	bmm_copy(copy, (char[4]){ 1, 2, 3, 4 }, 4);
	return copy[0] + copy[3] - 5;
}

static int good(char *to, char *from)
{
	uint64_t record[8];
	struct bmm_image image, next;
	int sum = says();

	bmm_clear_streaming(from, BYTES);
	sum += looks(from);
	bmm_copy_streaming(to, from, BYTES);
	bmm_drain();
	sum += looks(to);
	memset(record, 0, sizeof(record));
	if (bmm_image_init(&image, record, NULL, sizeof(record)) ||
	    bmm_stamp(to, &image, BYTES / sizeof(record)))
		return 1;
	bmm_drain();
	bmm_image_at(&next, &image, 1);
	sum += looks(to) + (int)image.size - 64 + (next.word[7] != 0);
	free(to);
	to = malloc(BYTES);
	if (!to || bmm_fill(to, "\0\0", 2, BYTES))
		return 1;
	bmm_move_streaming(to + 1, to, BYTES - 1);
	bmm_drain();
	sum += looks(to);
	free(to);
	to = malloc(BYTES);
	if (!to || bmm_fill_cached(to, "\0\0", 2, BYTES))
		return 1;
	bmm_move(to, to + 1, BYTES - 1);
	return sum + looks(to);
}

static char shared[BYTES];
static const char *called; /* what the other thread calls */

static void *other(void *arg)
{
	static char own[BYTES];

	(void)arg;
	if (!strcmp(called, "clear"))
		bmm_clear(shared, BYTES);
	if (!strcmp(called, "clear-streaming"))
		bmm_clear_streaming(shared, BYTES);
	if (!strcmp(called, "clear-parallel") &&
	    bmm_clear_parallel(shared, BYTES, NULL, NULL))
		exit(3);
	if (!strcmp(called, "copy"))
		bmm_copy(shared, own, BYTES);
	if (!strcmp(called, "move"))
		bmm_move_streaming(shared, own, BYTES);
	if (!strcmp(called, "fill") && bmm_fill(shared, own, 2, BYTES))
		exit(3);
	if (!strcmp(called, "read"))
		bmm_copy_streaming(own, shared, BYTES);
	return NULL;
}

static int races(void)
{
	pthread_t thread;
	size_t i;

	if (pthread_create(&thread, NULL, other, NULL))
		return 3;
	if (strcmp(called, "none")) /* nor if it has ended first */
		for (i = 0; i < BYTES; i++)
			((volatile char *)shared)[i] = 1;
	return pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	char *to = malloc(BYTES), *from = malloc(BYTES);
	const char *mode = argc > 1 ? argv[1] : "";
	volatile size_t bytes = BYTES; /* or the compiler would see it */

	if (!to || !from)
		return 3;
	if (!strcmp(mode, "good"))
		return good(to, from);
	if (!strcmp(mode, "write"))
		bmm_clear_streaming(to + 1, bytes);
	if (!strcmp(mode, "read"))
		bmm_copy_streaming(to, from + 1, bytes);
	if (!strncmp(mode, "race-", 5)) {
		called = mode + 5;
		return races();
	}
	if (!strcmp(mode, "unknown")) {
		bmm_copy_streaming(to, from, BYTES);
		return looks(to);
	}
	return 0;
}
