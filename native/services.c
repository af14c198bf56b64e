// SPDX-License-Identifier: GPL-2.0-only
/*
 * The services of a running kernel that the module uses, for a process: memory,
 * clocks, printk, locks and waiting, lookups, files. Hooks are in patch.c, work
 * queues in work.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"
#include "stub.h"

#define PERCPU ((size_t)1 << 16) /* bytes for all of the module */

/* Clocks */

static uint64_t clocks;

/* How often the module has read one. */
uint64_t services_clocks(void)
{
	return clocks;
}

static uint64_t now(void)
{
	clocks++;
	return bmm_host_clock();
}

STUB(uint64_t, ktime_get, void)
{
	return now();
}

STUB(uint64_t, ktime_get_mono_fast_ns, void)
{
	return now();
}

/* Memory */

STUB(void *, __kmalloc_cache_noprof, void *cache, unsigned int gfp, size_t size)
{
	return calloc(1, size);
}

STUB(void *, __kmalloc_noprof, size_t size, unsigned int gfp)
{
	return calloc(1, size);
}

/* The names of 6.1 */

STUB(void *, kmalloc_trace, void *cache, unsigned int gfp, size_t size)
{
	return calloc(1, size);
}

STUB(void *, __kmalloc, size_t size, unsigned int gfp)
{
	return calloc(1, size);
}

STUB(void, kfree, void *at)
{
	free(at);
}

/* Whole pages, as the kernel's; there is a node, and for 7.x an alignment. */
STUB(void *, __kvmalloc_node_noprof, size_t size)
{
	return aligned_alloc(PAGE, (size + PAGE - 1) & ~(PAGE - 1));
}

STUB(void *, kvmalloc_node, size_t size)
{
	return stub___kvmalloc_node_noprof(size);
}

STUB(void, kvfree, void *at)
{
	free(at);
}

STUB(void *, vmalloc_noprof, unsigned long size)
{
	return malloc(size);
}

STUB(void *, vmalloc, unsigned long size)
{
	return malloc(size);
}

STUB(void, vfree, void *at)
{
	free(at);
}

/* Per-CPU memory of the one CPU, in order of allocation. */
static char percpu[PERCPU] __attribute__((__aligned__(4096)));
static size_t percpu_used;

/* All of it, so that callers can save a copy. */
char *services_percpu(size_t *bytes)
{
	*bytes = percpu_used;
	return percpu;
}

/* Returns an offset from GS. */
STUB(uint64_t, pcpu_alloc_noprof, size_t size, size_t align, bool reserved,
     unsigned int gfp)
{
	size_t at = (percpu_used + align - 1) & ~(align - 1);

	if (at + size > PERCPU)
		return 0;
	percpu_used = at + size;
	return (uint64_t)percpu + at - fact("gs");
}

STUB(uint64_t, __alloc_percpu, size_t size, size_t align)
{
	return stub_pcpu_alloc_noprof(size, align, false, 0);
}

STUB(void, free_percpu, void *at)
{
}

/* Log: a request that goes well has a line, too, which nobody reads here. */

#define INFO '6' /* level */

static bool quiet;

/* Whether to suppress log messages. */
void services_quiet(bool on)
{
	quiet = on;
}

/* The kernel formats: it has more formats than C. */
STUB(int, _printk, const char *format, ...)
{
	int (*vsnprintf_of_kernel)(char *, size_t, const char *,
				   va_list) = (void *)symbol("vsnprintf");
	char line[512];
	va_list args;

	if (quiet)
		return 0;
	va_start(args, format);
	vsnprintf_of_kernel(line, sizeof(line), format, args);
	va_end(args);
	if (line[0] != 1) /* and the level */
		fprintf(stderr, "log: %s", line);
	else if (line[1] < INFO)
		fprintf(stderr, "log: %s", line + 2);
	return 0;
}

STUB(int, ___ratelimit, void *state, const char *function)
{
	return 0;
}

/* Messages of the kernel's own code go the same way. */
void services_init(void)
{
	divert("_printk", stub__printk);
	divert("__warn_printk", stub__printk);
}

/* Locks and waiting: there is one task, and nothing to wait for. */

STUB(void, mutex_lock, void *lock)
{
}

STUB(int, mutex_lock_interruptible, void *lock)
{
	return 0;
}

STUB(bool, try_module_get, void *module)
{
	return true;
}

STUB(void, mutex_unlock, void *lock)
{
}

STUB(void, msleep, unsigned int ms)
{
}

STUB(void, synchronize_rcu_tasks, void)
{
}

/* Lookups */

/* The kernel's own rejects these addresses: here they are user addresses. */
STUB(long, copy_from_kernel_nofault, void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return 0;
}

/* The kernel's kallsyms_on_each_match_symbol(); the image has each name once. */
static int match_symbol(int (*found)(void *, unsigned long), const char *name,
			void *data)
{
	char *at = symbol_or_null(name, 'k');

	return at ? found(data, (unsigned long)at) : 0;
}

/* The only symbol that the module looks up by a kprobe, which is refused. */
STUB(int, register_kprobe, void *probe)
{
	const char *name = AT(char *, probe, OFFSET("kprobe.symbol_name"));
	unsigned int inside = AT(unsigned int, probe, OFFSET("kprobe.offset"));

	if (strcmp(name, "kallsyms_on_each_match_symbol"))
		return -ENOENT;
	AT(char *, probe, OFFSET("kprobe.addr")) = (char *)match_symbol + inside;
	return -EILSEQ;
}

/* Files */

STUB(void *, kobject_create_and_add, const char *name, void *parent)
{
	return need(PAGE);
}

STUB(void, kobject_del, void *object)
{
}

STUB(void, kobject_put, void *object)
{
}

STUB(int, sysfs_create_groups, void *object, const void *groups)
{
	return 0;
}

STUB(int, sysfs_create_group, void *object, const void *group)
{
	return 0;
}
