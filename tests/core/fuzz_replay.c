// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The fuzz target without a fuzzer, for hosts that have none: runs the kept
 * inputs and as many made ones as it is told, which are the same in every run.
 *
 *   bmm-replay MADE KEPT...
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST 4096U /* of what a fuzzer keeps; made ones are shorter */
#define MADE	512U

static uint8_t now[LONGEST];
static size_t now_size;
static uint64_t state = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t number(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

/* In the form of the kept ones: to be looked at, and to be kept. */
static void show(int signal)
{
	size_t i;

	fprintf(stderr, "signal %d at ", signal);
	for (i = 0; i < now_size; i++)
		fprintf(stderr, "%02x", now[i]);
	fprintf(stderr, "\n");
	_exit(1);
}

static void load(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (!file) {
		perror(path);
		exit(3);
	}
	now_size = fread(now, 1, LONGEST, file);
	fclose(file);
}

/* A copy of its own size: what reads behind it is seen by a sanitizer. */
static void run(void)
{
	uint8_t *input = malloc(now_size + 1);

	if (!input)
		exit(3);
	memcpy(input, now, now_size);
	LLVMFuzzerTestOneInput(input, now_size);
	free(input);
}

/* A kept input with a few bytes of its own, or, half the time, any bytes. */
static void make(char **kept, int nr)
{
	bool any = !nr || number(2);
	size_t i;

	if (any)
		now_size = number(MADE);
	else
		load(kept[number((uint64_t)nr)]);
	for (i = 0; i < now_size; i++)
		if (any || !number(8))
			now[i] = (uint8_t)number(256);
}

int main(int argc, char **argv)
{
	static const int ends[] = { SIGABRT, SIGBUS, SIGILL, SIGSEGV };
	int made = argc > 1 ? atoi(argv[1]) : 0, i;

	for (i = 0; i < 4; i++)
		signal(ends[i], show);
	for (i = 2; i < argc; i++) {
		load(argv[i]);
		run();
	}
	for (i = 0; i < made; i++) {
		make(argv + 2, argc - 2);
		run();
	}
	printf("%d kept, %d made: all held\n", argc > 2 ? argc - 2 : 0, made);
	return 0;
}
