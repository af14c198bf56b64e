// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bmm_stage() makes of a file in a guest, built with the library itself,  and
 * by which of the kernel's ways it made small pages:
 *	bmmstage FILE OPTION...
 *
 * FILE is there, or becomes a new one of an odd size. It is read twice into one
 * memory. OPTION:
 *	cold            not from the page cache
 *	to=PATH         into a new file instead of a memfd
 *	node=N          of bmm_options
 *	user            as a user without rights
 *	filter          below a filter that kills for userfaultfd(2)
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "bulkmm.h"
#include "guest.h"

#define BYTES (16UL << 20)
#define FOLIOS \
	"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/shmem_alloc"
#define NOBODY 65534

/* Bytes that UFFDIO_COPY has copied for the library, which calls this. */
static size_t copied;

int ioctl(int fd, unsigned long request, ...)
{
	struct uffdio_copy *copy;
	va_list args;
	int result;

	va_start(args, request);
	copy = va_arg(args, void *);
	va_end(args);
	result = (int)syscall(SYS_ioctl, fd, request, copy);
	if (request == UFFDIO_COPY && copy->copy > 0)
		__atomic_fetch_add(&copied, (size_t)copy->copy,
				   __ATOMIC_RELAXED);
	return result;
}

/* Writes a file of whole words and a few bytes, unless it is there. */
static void write_source(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	uint64_t *words;

	if (fd < 0)
		return;
	words = mapped(BYTES, MAP_PRIVATE, -1);
	store(words, BYTES / 8, 1, 0);
	if (write(fd, words, BYTES) != (ssize_t)BYTES ||
	    write(fd, words, 7) != 7 || fsync(fd))
		err(1, "%s", path);
	munmap(words, BYTES);
	close(fd);
}

static void make_cold(const char *path)
{
	int fd = opened(path, O_RDONLY);

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		errx(1, "%s stays in the page cache", path);
	close(fd);
}

static void become_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		err(1, "setresuid");
}

static void filter_calls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(*rules), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		err(1, "seccomp");
}

static void prepare(const char *path, const char *word,
		    struct bmm_memory *memory, struct bmm_options *options)
{
	if (!strcmp(word, "cold"))
		make_cold(path);
	else if (!strncmp(word, "to=", 3))
		memory->fd = opened(word + 3, O_RDWR | O_CREAT | O_EXCL);
	else if (sscanf(word, "node=%u", &options->node) == 1)
		options->flags |= BMM_ON_NODE;
	else if (!strcmp(word, "user"))
		become_nobody();
	else if (!strcmp(word, "filter"))
		filter_calls();
	else
		errx(1, "no option %s", word);
}

/* Counts bytes that are not the file's, nor zero up to the end of the page. */
static unsigned long count_wrong(const char *at, size_t len)
{
	unsigned long wrong = differing((const uint64_t *)at, BYTES / 8, 1, 0);
	size_t end = (len + SMALL - 1) & -SMALL;
	uint64_t first = word_at(1, 0);

	wrong += memcmp(at + BYTES, &first, len - BYTES) != 0;
	for (size_t i = len; i < end; i++)
		wrong += at[i] != 0;
	return wrong;
}

/* The node that all pages are on; x: several nodes. */
static char find_node(char *at, size_t len)
{
	char all = 0, digit;
	int node;

	for (size_t i = 0; i < len; i += SMALL) {
		void *page = at + i;

		node = -1;
		syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0);
		digit = node < 0 ? '-' : (char)('0' + node);
		all = all && all != digit ? 'x' : digit;
	}
	return all;
}

static void print_content(const struct bmm_memory *memory,
			  const struct bmm_file *files)
{
	char *at = mmap(NULL, memory->len, PROT_READ, MAP_SHARED, memory->fd, 0);
	unsigned long wrong = 0;

	if (at == MAP_FAILED)
		err(1, "mmap");
	for (int i = 0; i < 2; i++)
		wrong += count_wrong(at + files[i].offset, files[i].len);
	printf("wrong=%lu node=%c ", wrong, find_node(at, memory->len));
}

static uint64_t huge_bytes(void)
{
	return number_in("/proc/meminfo", "ShmemHugePages: %lu") << 10;
}

int main(int argc, char **argv)
{
	struct bmm_options options = { .size = sizeof(options) };
	struct bmm_memory memory = { .size = sizeof(memory), .fd = -1 };
	struct bmm_file files[] = { { .path = argv[1] }, { .path = argv[1] } };
	uint64_t folios, huge;
	int error;

	if (argc < 2)
		errx(2, "usage: bmmstage FILE [OPTION...]");
	write_source(argv[1]);
	for (char **option = argv + 2; *option; option++)
		prepare(argv[1], *option, &memory, &options);
	folios = number_in(FOLIOS, "%lu");
	huge = huge_bytes();
	error = bmm_stage(&memory, files, 2, &options, NULL);
	if (!error)
		print_content(&memory, files);
	printf("error=%d copied=%zu folios=%lu huge=%d\n", -error, copied,
	       number_in(FOLIOS, "%lu") - folios, huge_bytes() - huge >= BYTES);
	return 0;
}
