/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* stage.h - the interfaces between the parts of bmm_stage() */
#ifndef STAGE_H
#define STAGE_H

#include <sys/stat.h>
#include <unistd.h>

#include "populate.h"

#define BUFFER	(2 * MIB) /* of a thread, and how many of those there may be */
#define BUFFERS 16U

/* A file that is read. */
struct source {
	int cached, direct; /* descriptors; -1: that cannot be had */
	char *map;	    /* only asked what is in the cache; or MAP_FAILED */
	bool seen;	    /* the system tells what is */
	struct stat status; /* before it was read */
};

struct staging {
	struct bmm_memory *memory;
	struct bmm_file *files;
	size_t count;
	struct source *sources;
	char *start; /* of the mapping, or NULL */
	size_t mapped;
	char *room, *buffers; /* a mapping, and the buffers in it, or NULL */
	size_t page;	      /* bytes of the memory's pages */
	int fd;
	bool owns_fd;
	int copies; /* a userfaultfd of the mapping, or -1 */
	struct bmm_report report;
};

/* Bytes of a file, and where they go. */
struct part {
	const struct source *source;
	char *to;	/* the memory itself, or a buffer */
	uintptr_t addr; /* in the memory */
	off_t at;
	size_t len;
};

static inline int stage_fail(struct staging *all, int error,
			     enum bmm_cause cause)
{
	all->report.error = -error;
	all->report.cause = cause;
	return -error;
}

/* stage_sources.c: the files that are read */
int stage_open(struct staging *all);
int stage_compare(struct staging *all);
void stage_close(struct staging *all);

/* stage_memory.c: what they are read into */
int stage_map(struct staging *all);
void stage_unmap(struct staging *all);
int stage_seal(struct staging *all);
void stage_undo(struct staging *all);

/* stage_write.c: from a buffer into small pages */
void stage_copies_open(struct staging *all);
void stage_copies_close(struct staging *all);
bool stage_write(const struct staging *all, const struct part *part,
		 struct page_result *result);

/* stage_read.c: the reading, which populate.c calls for each slice */
size_t stage_file_at(const struct staging *all, uintptr_t addr);

#endif
