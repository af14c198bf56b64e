// SPDX-License-Identifier: GPL-2.0-only
/*
 * module/callers.c, for real, on a text that is made up.
 *
 *	callersim TEXT SYMBOLS FUNCTION...
 *
 * TEXT is mapped at TEXT_AT; SYMBOLS has lines "ADDRESS NAME" in order. Prints
 * for each function the result of its check, and its subject.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TEXT_AT 0x20000000ul

typedef uint8_t u8;
typedef int32_t s32;
typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(array)    (sizeof(array) / sizeof((array)[0]))
#define BIT(n)		     (1ul << (n))
#define IS_ERR_VALUE(x)	     ((unsigned long)(x) >= -4095ul)
#define min(a, b)	     ((a) < (b) ? (a) : (b))
#define max(a, b)	     ((a) > (b) ? (a) : (b))
#define SZ_64K		     0x10000
#define GFP_KERNEL	     0
#define kcalloc(n, size, f)  calloc(n, size)
#define kfree		     free
#define cond_resched()	     ((void)0)
#define hweight_long	     __builtin_popcountl
#define scnprintf	     snprintf
#define strscpy(to, from, n) snprintf(to, n, "%s", from)

static struct symbol {
	unsigned long at;
	char name[128];
} symbols[256];
static size_t symbols_nr;

/* "%ps" */
static void print_symbol(char *to, size_t size, unsigned long at)
{
	size_t i = symbols_nr;

	while (i && symbols[--i].at > at)
		;
	snprintf(to, size, "%s", symbols[i].name);
}

#define callers_print(name, size, format, at) \
	print_symbol(name, size, (unsigned long)(at))

#include "../../module/callers.c"

long bmm_symbol_data(const char *symbol)
{
	size_t i;

	for (i = 0; i < symbols_nr; i++)
		if (!strcmp(symbols[i].name, symbol))
			return (long)symbols[i].at;
	return -ENOENT;
}

long bmm_symbol_entry(const char *symbol)
{
	return bmm_symbol_data(symbol);
}

static bool map_text(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat stat;

	return fd >= 0 && !fstat(fd, &stat) &&
	       mmap((void *)TEXT_AT, (size_t)stat.st_size, PROT_READ,
		    MAP_PRIVATE | MAP_FIXED, fd, 0) == (void *)TEXT_AT;
}

static bool read_symbols(const char *path)
{
	FILE *file = fopen(path, "re");

	while (file && symbols_nr < ARRAY_SIZE(symbols) &&
	       fscanf(file, "%lx %127s", &symbols[symbols_nr].at,
		      symbols[symbols_nr].name) == 2)
		symbols_nr++;
	return symbols_nr;
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 3 || !map_text(argv[1]) || !read_symbols(argv[2]))
		return 2;
	for (i = 3; i < argc; i++) {
		const char *subject = "-";
		int err = bmm_callers_check(argv[i], &subject);

		printf("%d %s\n", err, subject);
	}
	bmm_callers_done();
	return 0;
}
