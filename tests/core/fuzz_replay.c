// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The fuzz target without a fuzzer, for hosts that have none: runs the kept
 * inputs and as many made ones as it is told, which are the same in every run.
 *
 *   bmm-replay MADE KEPT...
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MADE 512U /* bytes */

static uint8_t input[4096]; /* as long as what a fuzzer keeps */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t number(size_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (size_t)(state >> 33) % below;
}

static size_t load(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		exit(3);
	}
	size = fread(input, 1, sizeof(input), file);
	fclose(file);
	return size;
}

/* A kept input with a few bytes of its own, or, half the time, any bytes. */
static size_t make(char **kept, size_t nr)
{
	bool any = number(2);
	size_t size = any ? number(MADE) : load(kept[number(nr)]), i;

	for (i = 0; i < size; i++)
		if (any || !number(8))
			input[i] = (uint8_t)number(256);
	return size;
}

int main(int argc, char **argv)
{
	int kept = argc - 2, made = kept > 0 ? atoi(argv[1]) : 0, i;

	for (i = 0; i < kept + made; i++)
		LLVMFuzzerTestOneInput(input,
				       i < kept ? load(argv[2 + i]) :
						  make(argv + 2, (size_t)kept));
	printf("%d kept, %d made: all held\n", kept, made);
	return 0;
}
