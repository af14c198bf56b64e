// SPDX-License-Identifier: GPL-2.0-only
/* The images of the kernel and the module, at their addresses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"

/* Maps code and data together, on huge pages if possible. */
static void map_image(const char *directory, const char *name)
{
	char path[4096], size_name[32];
	uint64_t base = fact(name), size;
	size_t done, bytes;
	ssize_t got;
	char *at;
	int fd;

	snprintf(size_name, sizeof(size_name), "%s size", name);
	size = fact(size_name);
	if (!base)
		return;
	bytes = (size + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1);
	at = mmap((void *)base, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (char *)base)
		die("the %s cannot be mapped at 0x%llx: %s", name,
		    (unsigned long long)base,
		    errno == EEXIST ? "the range is taken" : strerror(errno));
	madvise(at, bytes, MADV_HUGEPAGE);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (done = 0; done < size; done += (size_t)got) {
		got = read(fd, at + done, size - done);
		if (got <= 0)
			die("%s: cannot be read", path);
	}
	close(fd);
}

/**
 * image_load() - map the images of a directory and read their symbols
 * @directory: written by the loader
 */
void image_load(const char *directory)
{
	symbols_load(directory);
	map_image(directory, "kernel");
	map_image(directory, "module");
}
