// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the guest's busybox cannot do: time a write to a sysfs file in
 * nanoseconds, prove that memory on a DAX file or device holds what was stored
 * to it, load a module once (busybox retries when a module refuses), and report
 * all that bulkmm shows in sysfs.
 * Each command prints its result on one line and exits 0, or prints what went
 * wrong on stderr and exits 1.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mark.h"
#include "measure.h"
#include "words.h"

#define PIECE	    (2UL << 20) /* one huge page: at most one PMD is touched */
#define TEN_SECONDS 10000000000UL
#define BULKMM	    "/sys/kernel/bulkmm/"

/*
 * Write @text to @file and wait until @node exists, if one is named. The
 * driver core probes within the write, so the loop rarely iterates.
 */
static int timed_write(const char *file, const char *text, const char *node)
{
	struct stat st;
	uint64_t start;
	int fd = open(file, O_WRONLY);

	if (fd < 0)
		err(1, "%s", file);
	stay();
	start = now();
	if (node)
		bmm_mark(BMM_MARK_BEGIN(1));
	if (write(fd, text, strlen(text)) < 0)
		err(1, "%s", file);
	while (node && stat(node, &st)) {
		if (now() - start > TEN_SECONDS)
			err(1, "%s", node);
	}
	if (node)
		bmm_mark(BMM_MARK_END(1));
	printf("%lu\n", now() - start);
	return 0;
}

static int say_verdict(const char *file, uint64_t bytes, uint64_t bad)
{
	if (bad) {
		fprintf(stderr, "bmmguest: %s: %lu words differ\n", file, bad);
		return 1;
	}
	printf("%lu\n", bytes);
	return 0;
}

/* Write @bytes (a multiple of PIECE) with write(2), through to the medium. */
static int fill(const char *file, uint64_t bytes, uint64_t seed)
{
	uint64_t *buf = malloc(PIECE);
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || !buf)
		err(1, "%s", file);
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		store(buf, PIECE / 8, seed, at / 8);
		if (write(fd, buf, PIECE) != (ssize_t)PIECE)
			err(1, "%s", file);
	}
	if (fsync(fd) || close(fd))
		err(1, "%s", file);
	printf("%lu\n", bytes);
	return 0;
}

/* Read back with read(2) what fill() or the mapping wrote. */
static int check(const char *file, uint64_t bytes, uint64_t seed)
{
	uint64_t *buf = malloc(PIECE), bad = 0;
	int fd = open(file, O_RDONLY);

	if (fd < 0 || !buf)
		err(1, "%s", file);
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		if (read(fd, buf, PIECE) != (ssize_t)PIECE)
			err(1, "%s", file);
		bad += differing(buf, PIECE / 8, seed, at / 8);
	}
	return say_verdict(file, bytes, bad);
}

/*
 * MAP_SYNC is granted on DAX only, so a mapping of the page cache cannot pass.
 * A DAX device does not need it.
 */
static void *map(int fd, uint64_t bytes)
{
	struct stat st;
	int flags = MAP_SHARED;

	if (fstat(fd, &st))
		return MAP_FAILED;
	if (S_ISREG(st.st_mode))
		flags = MAP_SHARED_VALIDATE | MAP_SYNC;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* Map @file, write (or compare) a piece at its start, middle and end. */
static int mapped(const char *file, uint64_t bytes, uint64_t seed, int writes)
{
	uint64_t at[] = { 0, bytes / 2 & ~(PIECE - 1), bytes - PIECE };
	uint64_t bad = 0;
	int fd = open(file, O_RDWR);
	char *base;

	if (fd < 0)
		err(1, "%s", file);
	base = map(fd, bytes);
	if (base == MAP_FAILED)
		err(1, "%s", file);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t *piece = (uint64_t *)(base + at[i]);

		if (writes)
			store(piece, PIECE / 8, seed, at[i] / 8);
		bad += differing(piece, PIECE / 8, seed, at[i] / 8);
	}
	if (munmap(base, bytes) || close(fd))
		err(1, "%s", file);
	return say_verdict(file, 3 * PIECE, bad);
}

static int load(const char *file, const char *options)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, options, 0))
		err(1, "%s", file);
	puts("loaded");
	return 0;
}

/* print a file as JSON text */
static void print_text(const char *file)
{
	FILE *in = fopen(file, "r");

	putchar('"');
	for (int c; in && (c = getc(in)) != EOF;) {
		if (c == '\n')
			fputs("\\n", stdout);
		else
			putchar(c < ' ' || c == '"' || c == '\\' ? ' ' : c);
	}
	putchar('"');
	if (in)
		fclose(in);
}

/* one event with every file of the module's */
static int report_state(const char *when, const char *arm)
{
	static char whole[1 << 16]; /* others report meanwhile */
	glob_t found;

	setvbuf(stdout, whole, _IOFBF, sizeof(whole));
	if (glob(BULKMM "{version,*/*}", GLOB_BRACE, NULL, &found))
		err(1, "%s", BULKMM);
	printf("{\"event\":\"state\",\"when\":\"%s\",\"arm\":\"%s\",\"files\":{",
	       when, arm);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		printf("%s\"%s\":", i ? "," : "",
		       found.gl_pathv[i] + sizeof(BULKMM) - 1);
		print_text(found.gl_pathv[i]);
	}
	puts("}}");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "write") && (argc == 4 || argc == 5))
		return timed_write(argv[2], argv[3], argv[4]);
	if (!strcmp(what, "load") && argc == 4)
		return load(argv[2], argv[3]);
	if (!strcmp(what, "state") && argc == 4)
		return report_state(argv[2], argv[3]);
	if (argc == 5) {
		uint64_t bytes = strtoull(argv[3], NULL, 0);
		uint64_t seed = strtoull(argv[4], NULL, 0);

		if (!strcmp(what, "fill"))
			return fill(argv[2], bytes, seed);
		if (!strcmp(what, "check"))
			return check(argv[2], bytes, seed);
		if (!strcmp(what, "map-write"))
			return mapped(argv[2], bytes, seed, 1);
		if (!strcmp(what, "map-check"))
			return mapped(argv[2], bytes, seed, 0);
	}
	fprintf(stderr,
		"usage: bmmguest write FILE TEXT [NODE]\n"
		"       bmmguest load MODULE OPTIONS\n"
		"       bmmguest state WHEN ARM\n"
		"       bmmguest fill|check|map-write|map-check FILE BYTES SEED\n");
	return 2;
}
