// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the guest's busybox cannot do: time a write to a sysfs file in
 * nanoseconds, prove that a mapped DAX file or device holds what was stored to
 * it, load a module once (busybox retries when a module refuses), fill memory
 * that a kernel will write next, fragment memory, list the free pages of a pool,
 * and jump into another kernel. Each command prints its result
 * and exits 0, or prints what went wrong on stderr and exits 1.
 */
#include <linux/kernel-page-flags.h>
#include <linux/reboot.h>
#include <sys/stat.h>

#include "guest.h"
#include "measure.h"

#define PIECE (2UL << 20) /* one huge page: at most one PMD is touched */

#ifndef MADV_DONTNEED_LOCKED /* of <sys/mman.h>, Linux 5.18 */
#define MADV_DONTNEED_LOCKED 24
#endif

/*
 * FILE TEXT [NODE]: write to a file, and wait until NODE exists. The driver
 * core probes within the write, so the loop rarely iterates; if it never ends,
 * the host ends the guest.
 */
static void timed_write(char **word)
{
	int fd = opened(word[0], O_WRONLY);
	struct stat st;
	uint64_t start;

	start = now();
	if (write(fd, word[1], strlen(word[1])) < 0)
		err(1, "%s", word[0]);
	while (word[2] && stat(word[2], &st))
		;
	printf("%lu\n", now() - start);
}

/*
 * write|read FILE BYTES SEED: map it, write (or compare) a piece at its start,
 * middle and end. MAP_SYNC is granted on DAX only, so a mapping of the page
 * cache cannot pass. A DAX device does not need it.
 */
static void mapping(char **word)
{
	uint64_t bytes = number(word[2]), seed = number(word[3]), bad = 0;
	uint64_t at[] = { 0, bytes / 2 & ~(PIECE - 1), bytes - PIECE };
	int fd = opened(word[1], O_RDWR), flags = MAP_SHARED;
	struct stat st;
	char *base;

	if (fstat(fd, &st))
		err(1, "%s", word[1]);
	if (S_ISREG(st.st_mode))
		flags = MAP_SHARED_VALIDATE | MAP_SYNC;
	base = mapped(bytes, flags, fd);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t *piece = (uint64_t *)(base + at[i]);

		if (!strcmp(word[0], "write"))
			store(piece, PIECE / 8, seed, at[i] / 8);
		bad += differing(piece, PIECE / 8, seed, at[i] / 8);
	}
	if (munmap(base, bytes) || close(fd))
		err(1, "%s", word[1]);
	if (bad)
		errx(1, "%s: %lu words differ", word[1], bad);
	printf("%lu\n", 3 * PIECE);
}

static void load(char **word)
{
	int fd = opened(word[0], O_RDONLY | O_CLOEXEC);

	if (syscall(SYS_finit_module, fd, word[1], 0))
		err(1, "%s", word[0]);
	puts("loaded");
}

/* A pattern shows bytes that a kernel omits when it writes there next. */
static void fill_words(volatile uint64_t *to, uint64_t bytes, uint64_t pattern)
{
	for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = pattern;
}

/* MIB PATTERN: free memory */
static void poison(char **word)
{
	uint64_t bytes = number(word[0]) << 20;

	fill_words(mapped(bytes, MAP_PRIVATE, -1), bytes, number(word[1]));
	printf("%lu\n", bytes);
}

static uint64_t free_bytes(void)
{
	return number_in("/proc/meminfo", "MemFree: %lu") << 10;
}

/*
 * MIB PAGES: leave so much free memory whole. Of the rest, keep one page in so
 * many, locked, and free the others: no huge page is left, and none can be
 * made, where locked pages are not moved (compact_unevictable_allowed). Prints
 * what is fragmented, and holds it for ever.
 */
static void fragment(char **word)
{
	uint64_t whole = number(word[0]) << 20, held = number(word[1]) * SMALL;
	char *at = NULL, *last = NULL;
	uint64_t len = 0;

	for (; free_bytes() > whole + PIECE; len += PIECE, last = at) {
		at = advised(PIECE, SMALL, MADV_NOHUGEPAGE);
		if (mlock(at, PIECE))
			err(1, "mlock");
		*(char **)at = last;
	}
	for (; at; at = *(char **)at)
		for (uint64_t i = 0; i < PIECE; i += held)
			if (madvise(at + i + SMALL, held - SMALL,
				    MADV_DONTNEED_LOCKED))
				err(1, "MADV_DONTNEED_LOCKED");
	printf("%lu\n", len);
	fflush(stdout);
	pause();
}

/* START BYTES PATTERN: a device without a driver, at this physical address */
static void poison_device(char **word)
{
	uint64_t start = number(word[0]), bytes = number(word[1]);
	uint64_t pattern = number(word[2]);
	int fd = opened("/dev/mem", O_RDWR | O_SYNC);

	for (uint64_t done = 0; done < bytes; done += PIECE) {
		uint64_t some = bytes - done < PIECE ? bytes - done : PIECE;
		uint64_t *at = mmap(NULL, some, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, start + done);

		if (at == MAP_FAILED)
			err(1, "device");
		fill_words(at, some, pattern);
		if (at[some / sizeof(*at) - 1] != pattern)
			errx(1, "device holds something else");
		munmap(at, some);
	}
	printf("%lu\n", bytes);
}

/* KERNEL INITRAMFS WORDS: neither the firmware nor the processes here are told */
static void jump(char **word)
{
	int image = opened(word[0], O_RDONLY);
	int files = opened(word[1], O_RDONLY);

	if (syscall(SYS_kexec_file_load, image, files, strlen(word[2]) + 1,
		    word[2], 0UL))
		err(1, "load");
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	err(1, "jump");
}

/* KIB: the PFNs of hugetlb pages of this size that nobody maps */
static void free_pages(char **word)
{
	uint64_t step = number(word[0]) * 1024 / SMALL, pfn, flags, next, maps;
	uint64_t wanted = 1UL << KPF_HUGE | 1UL << KPF_COMPOUND_HEAD;
	int flags_fd = opened("/proc/kpageflags", O_RDONLY);
	int maps_fd = opened("/proc/kpagecount", O_RDONLY);

	for (pfn = 0; pread(flags_fd, &flags, 8, (off_t)pfn * 8) == 8 &&
		      pread(maps_fd, &maps, 8, (off_t)pfn * 8) == 8;
	     pfn += step)
		if ((flags & wanted) == wanted && !maps &&
		    pread(flags_fd, &next, 8, (off_t)(pfn + step) * 8) == 8 &&
		    !(next & 1UL << KPF_COMPOUND_TAIL)) /* it ends there */
			printf("%lu\n", pfn);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "write FILE TEXT [NODE]", 2, 3, timed_write },
		{ "load MODULE OPTIONS", 2, 2, load },
		{ "poison MIB PATTERN", 2, 2, poison },
		{ "poison START BYTES PATTERN", 3, 3, poison_device },
		{ "fragment MIB PAGES", 2, 2, fragment },
		{ "free-pages KIB", 1, 1, free_pages },
		{ "kexec KERNEL INITRAMFS WORDS", 3, 3, jump },
		{ "mapping write|read FILE BYTES SEED", 4, 4, mapping },
	};

	return RUN_ONE(commands, argc, argv);
}
