// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the guest's busybox cannot do: time a write to a sysfs file in
 * nanoseconds, prove that memory on a DAX file or device holds what was stored
 * to it, load a module once (busybox retries when a module refuses), report all
 * that bulkmm shows in sysfs, fill memory that a kernel will write next, and
 * jump into another kernel.
 * Each command prints its result on one line and exits 0, or prints what went
 * wrong on stderr and exits 1.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/reboot.h>
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

/* With this pattern a byte shows that a kernel omits when it writes there next. */
static void poison(volatile uint64_t *to, uint64_t bytes, uint64_t pattern)
{
	for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = pattern;
}

static int poison_free(uint64_t bytes, uint64_t pattern)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "memory");
	poison(at, bytes, pattern);
	printf("%lu\n", bytes);
	return 0;
}

/* A device without a driver, at this physical address. */
static int poison_device(uint64_t start, uint64_t bytes, uint64_t pattern)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);

	if (fd < 0)
		err(1, "/dev/mem");
	for (uint64_t done = 0; done < bytes; done += PIECE) {
		uint64_t some = bytes - done < PIECE ? bytes - done : PIECE;
		uint64_t *at = mmap(NULL, some, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, start + done);

		if (at == MAP_FAILED)
			err(1, "device");
		poison(at, some, pattern);
		if (at[some / sizeof(*at) - 1] != pattern)
			errx(1, "device holds something else");
		munmap(at, some);
	}
	printf("%lu\n", bytes);
	return 0;
}

/* Neither the firmware nor the processes here are told. */
static int jump(const char *kernel, const char *initramfs, const char *words)
{
	int image = open(kernel, O_RDONLY), files = open(initramfs, O_RDONLY);

	if (image < 0 || files < 0)
		err(1, "%s", image < 0 ? kernel : initramfs);
	if (syscall(SYS_kexec_file_load, image, files, strlen(words) + 1, words,
		    0UL))
		err(1, "load");
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	err(1, "jump");
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
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
	if (!strcmp(what, "poison") && argc == 4)
		return poison_free(number(argv[2]) << 20, number(argv[3]));
	if (!strcmp(what, "poison") && argc == 5)
		return poison_device(number(argv[2]), number(argv[3]),
				     number(argv[4]));
	if (!strcmp(what, "kexec") && argc == 5)
		return jump(argv[2], argv[3], argv[4]);
	if (argc == 5) {
		uint64_t bytes = number(argv[3]), seed = number(argv[4]);

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
		"       bmmguest poison MIB PATTERN\n"
		"       bmmguest poison START BYTES PATTERN\n"
		"       bmmguest kexec KERNEL INITRAMFS WORDS\n"
		"       bmmguest fill|check|map-write|map-check FILE BYTES SEED\n");
	return 2;
}
