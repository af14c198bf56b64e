// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Why a range could not be populated, or was slow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "populate.h"

/* Not inline: its buffer must not be on the stack during the work. */
__attribute__((noinline)) void pressure_read(struct pressure *pressure)
{
	char text[4096]; /* what the kernel gives at once */
	const char *at;

	*pressure = (struct pressure){ 0 };
	if (!kernel_text("/proc/vmstat", text, sizeof(text)))
		return;
	for (at = text; (at = strstr(at, "\nallocstall_")); at++)
		pressure->stalls += strtoul(at + strcspn(at, " "), NULL, 10);
	at = strstr(text, "\ncompact_stall ");
	if (at)
		pressure->compactions = strtoul(at + strcspn(at, " "), NULL, 10);
}

/* Why a piece was slow, from what has happened since. */
enum bmm_cause cause_of_slowness(const struct pressure *before)
{
	struct pressure now;

	pressure_read(&now);
	if (now.compactions > before->compactions)
		return BMM_CAUSE_COMPACTION;
	return now.stalls > before->stalls ? BMM_CAUSE_RECLAIM :
					     BMM_CAUSE_UNKNOWN;
}

/* Opens no file: in a full cgroup none can be opened. */
static bool is_hole(uintptr_t page)
{
	unsigned char there;

	return mincore((void *)page, 1, &there) && errno == ENOMEM;
}

/* Returns the cause, and sets the error MADV_POPULATE_WRITE has for it. */
static enum bmm_cause why_failed(const struct crew *crew, int *error)
{
	bool read = crew->options.flags & BMM_READ, known;
	const struct outcome *failure = &crew->failure;
	struct map map = { 0 };

	if (is_hole(failure->failed)) {
		*error = -ENOMEM;
		return BMM_CAUSE_HOLE;
	}
	known = map_at(failure->failed, &map);
	if (known && !(map.is & (read ? READABLE : WRITABLE))) {
		*error = -EINVAL;
		return BMM_CAUSE_PROTECTED;
	}
	switch (-failure->error) {
	case EINVAL:
		return BMM_CAUSE_SPECIAL;
	case EHWPOISON:
		return BMM_CAUSE_POISONED;
	case ENOMEM:
		return BMM_CAUSE_MEMORY;
	case EFAULT:
		if (!known)
			return BMM_CAUSE_UNKNOWN;
		if (map.page > (size_t)sysconf(_SC_PAGESIZE))
			return BMM_CAUSE_POOL;
		return map.is & ANONYMOUS ? BMM_CAUSE_PROTECTED :
					    BMM_CAUSE_BACKING;
	default:
		return BMM_CAUSE_UNKNOWN;
	}
}

/* Why the range failed, if it did; completes the report. */
enum bmm_cause cause_of_failure(struct crew *crew)
{
	switch (crew->report.error) {
	case 0:
		return BMM_CAUSE_NONE;
	case -ECANCELED:
		return BMM_CAUSE_CANCELLED;
	case -ECHILD:
		return BMM_CAUSE_FORKED;
	default:
		crew->report.failed = (void *)crew->failure.failed;
		crew->report.failed_len = crew->failure.len;
		return why_failed(crew, &crew->report.error);
	}
}
