// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Memory for a test, what of it is there, and calls that fail. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "memory.h"

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* A sanitizer would have memory of its own for each page. */
__attribute__((no_sanitize("address", "thread", "undefined"))) long
faults_of(char *p, size_t len, bool write)
{
	volatile char *page = p;
	long before;
	size_t i;
	char byte;

	before = faults();
	before = faults(); /* the first may have one of its own */
	for (i = 0; i < len; i += PAGE) {
		byte = page[i];
		if (write)
			page[i] = byte;
	}
	return faults() - before;
}

/* Nor for each byte: ThreadSanitizer would take longer than all else. */
__attribute__((no_sanitize("address", "thread", "undefined"))) bool
is_zero(const char *p, size_t len)
{
	typedef uint64_t word __attribute__((__aligned__(1), __may_alias__));
	uint64_t any = 0;
	size_t i;

	for (i = 0; i + sizeof(any) <= len; i += sizeof(any))
		any |= *(const word *)(p + i);
	for (; i < len; i++)
		any |= (uint64_t)(unsigned char)p[i];
	return !any;
}

char *try_map(size_t len, int prot, int flags, int fd)
{
	return mmap(NULL, len, prot, flags, fd, 0);
}

static char *must(char *p)
{
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(SKIPPED);
	}
	return p;
}

char *map(size_t len, int flags, int fd)
{
	char *p = must(try_map(len, PROT_READ | PROT_WRITE, flags, fd));

	if (fd >= 0)
		close(fd);
	return p;
}

char *try_anonymous(size_t len, int more)
{
	char *p = try_map(len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | more, -1);

	if (p != MAP_FAILED)
		madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

char *anonymous(size_t len)
{
	return must(try_anonymous(len, 0));
}

int memfd(size_t len)
{
	int fd = memfd_create("tests", 0);

	if (fd < 0 || ftruncate(fd, (off_t)len)) {
		perror("memfd_create");
		exit(1);
	}
	return fd;
}

int removed(size_t len)
{
	char name[] = "/dev/shm/bulkmm-XXXXXX";
	struct statfs fs;
	int fd;

	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC)
		return memfd(len);
	fd = mkstemp(name);
	if (fd < 0 || unlink(name) || ftruncate(fd, (off_t)len)) {
		perror(name);
		exit(1);
	}
	return fd;
}

const char *text_of(const char *path)
{
	static char text[256 << 10];
	int fd = open(path, O_RDONLY);
	size_t len = 0;
	ssize_t got;

	while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = 0;
	close(fd);
	return text;
}

static long migrated(void)
{
	const char *line = strstr(text_of("/proc/vmstat"), "pgmigrate_success");

	return line ? strtol(strchr(line, ' '), NULL, 10) : 0;
}

/* A page that the kernel happens to migrate, for a huge one, faults as well. */
bool is_there(char *p, size_t len)
{
	long before = migrated(), taken = faults_of(p, len, true);

	return taken <= 2 + migrated() - before;
}

void forbid(unsigned int nr, unsigned int which, uint32_t mask, uint32_t value,
	    uint32_t least, unsigned int error)
{
	const size_t args = offsetof(struct seccomp_data, args);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (unsigned int)args + 8 * which),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned int)args + 8),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, error == KILLS ?
						  SECCOMP_RET_KILL_PROCESS :
						  SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		puts("no filter of system calls");
		exit(SKIPPED);
	}
}

/* Before Linux 6.11; the number is in <linux/fs.h> of later headers only. */
void forbid_query(void)
{
	forbid(SYS_ioctl, 1, ~0U, 0xc0686611, 0, ENOTTY);
}
