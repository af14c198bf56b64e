// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a thread of bmm_populate() does for bmm_stage(): it populates a part of
 * its slice, and reads into it what belongs there; or reads into a buffer, of
 * which it makes small pages.
 */
#include <errno.h>
#include <string.h>

#include "stage.h"

#define CHUNK (2 * MIB) /* copied at once; half of a CPU's own cache or so */

/* The file that an address belongs to. */
size_t stage_file_at(const struct staging *all, uintptr_t addr)
{
	size_t low = 0, high = all->count, middle;

	while (high - low > 1) { /* of those at an offset, the last has bytes */
		middle = low + (high - low) / 2;
		if ((uintptr_t)all->start + all->files[middle].offset <= addr)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Reads as much as there is; returns 0 at the end of the file, -1: errno. */
static ssize_t read_part(const struct part *part, size_t done, bool cached)
{
	const struct source *source = part->source;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), left = part->len - done;
	ssize_t got;

	if (!cached && source->direct >= 0 && !(done & (page - 1))) {
		got = pread(source->direct, part->to + done,
			    round_up(left, page), part->at + (off_t)done);
		/* what the disk has behind the end of the file */
		memset(part->to + part->len, 0, -part->len & (page - 1));
		if (got >= 0 || errno != EINVAL)
			return got < (ssize_t)left ? got : (ssize_t)left;
	}
	return pread(source->cached, part->to + done, left,
		     part->at + (off_t)done);
}

/*
 * Why a read failed. What it takes memory for is the page cache, and a buffer
 * that is used for the first time: of that the kernel may say EFAULT.
 */
static void explain_read(const struct part *part, int error,
			 struct page_result *result)
{
	bool in_buffer = part->to != (char *)part->addr;

	if (error == EFAULT && in_buffer)
		error = ENOMEM;
	result->cause = error == ENOMEM ? BMM_CAUSE_MEMORY : BMM_CAUSE_FILE;
	result->error = -error;
}

static bool read_all(const struct part *part, bool cached,
		     struct page_result *result)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), done;
	ssize_t got;

	for (done = 0; done < part->len; done += (size_t)got) {
		do
			got = read_part(part, done, cached);
		while (got < 0 && errno == EINTR);
		if (got > 0)
			continue;
		result->cause = BMM_CAUSE_CHANGED;
		result->error = -ESTALE;
		if (got)
			explain_read(part, errno, result);
		result->failed = part->addr + (done & -page);
		result->len = page;
		return false;
	}
	return true;
}

/* Reads a part, all of which is in the page cache, or none, by way of a buffer. */
static bool copy_all(const struct staging *all, struct part part, bool cached,
		     struct page_result *result)
{
	size_t left = part.len;

	for (; left; left -= part.len) {
		part.len = left < BUFFER ? left : BUFFER;
		if (!read_all(&part, cached, result))
			return false;
		memset(part.to + part.len, 0, -part.len & (all->page - 1));
		if (!stage_write(all, &part, result))
			return false;
		part.addr += part.len;
		part.at += (off_t)part.len;
	}
	return true;
}

/* Whether the page cache has a chunk, by its first page and its last. */
static bool is_cached(const struct source *source, off_t at, size_t len)
{
	uintptr_t from = (uintptr_t)source->map + (uintptr_t)at;

	return source->seen && pages_cached(from, from + len);
}

/* The next part of a slice, all of which is in the page cache, or none. */
static bool next_part(struct part *part, size_t left)
{
	off_t end = part->source->status.st_size;
	size_t len = CHUNK;
	bool cached;

	if (left > (size_t)(end - part->at)) /* to the end of a page */
		left = (size_t)(end - part->at);
	cached = is_cached(part->source, part->at, left < len ? left : len);
	while (!cached && len < left &&
	       !is_cached(part->source, part->at + (off_t)len,
			  left - len < CHUNK ? left - len : CHUNK))
		len += CHUNK;
	part->len = left < len ? left : len;
	return cached;
}

/**
 * stage_slice() - make a slice resident, and read into it what belongs there
 * @worker:  of workers that are not locked
 * @slice:   of one file
 * @result:  result: what failed, if anything
 */
void stage_slice(struct worker *worker, const struct slice *slice,
		 struct page_result *result)
{
	const struct staging *all = worker->workers->staging;
	size_t number = stage_file_at(all, slice->from), page;
	struct part part = { .source = &all->sources[number] };
	uintptr_t from = slice->from, to;
	bool cached;

	page = (size_t)sysconf(_SC_PAGESIZE);
	for (; from < slice->to; from = to) {
		part.addr = from;
		part.to = all->buffers ? all->buffers + worker->id * BUFFER :
					 (char *)from;
		part.at = (off_t)(from - (uintptr_t)all->start -
				  all->files[number].offset);
		cached = next_part(&part, slice->to - from);
		to = from + round_up(part.len, page);
		if (all->buffers) {
			copy_all(all, part, cached, result);
		} else {
			pages_populate(&worker->workers->pages, from, to,
				       &slice->segment->map, result);
			if (!result->error)
				read_all(&part, cached, result);
		}
		if (result->error)
			return;
	}
	result->resident = false; /* it was work */
}
