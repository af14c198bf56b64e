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

#define PERCPU ((size_t)1 << 16) /* bytes for all of the module */

/* Clocks */

static uint64_t clocks;

/* How often the module has read one. */
uint64_t services_clocks(void)
{
	return clocks;
}

STUB(uint64_t, ktime_get, void)
{
	clocks++;
	return bmm_host_clock();
}

STUB_AS(ktime_get_mono_fast_ns, ktime_get);

/* Memory */

STUB(void *, __kmalloc_noprof, size_t size, unsigned int gfp)
{
	return calloc(1, size);
}

STUB(void *, __kmalloc_cache_noprof, void *cache, unsigned int gfp, size_t size)
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

STUB_AS(vmalloc_noprof, __kmalloc_noprof);
STUB_AS(kvfree, kfree);
STUB_AS(vfree, kfree);

/* The names of 6.1 */
STUB_AS(__kmalloc, __kmalloc_noprof);
STUB_AS(kmalloc_trace, __kmalloc_cache_noprof);
STUB_AS(kvmalloc_node, __kvmalloc_node_noprof);
STUB_AS(vmalloc, __kmalloc_noprof);

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

STUB_AS(__alloc_percpu, pcpu_alloc_noprof);

/* Log: a request that goes well has a line, too, which nobody reads here. */

#define INFO '6' /* level */

static bool quiet;

/* Suppresses log messages from now on. */
void services_quiet(void)
{
	quiet = true;
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

/* Messages of the kernel's own code go the same way. */
void services_init(void)
{
	divert("_printk", stub__printk);
	divert("__warn_printk", stub__printk);
}

/* Lookups */

/* The kernel's own rejects these addresses: here they are user addresses. */
STUB(long, copy_from_kernel_nofault, void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return 0;
}

/* The kernel's kallsyms_on_each_match_symbol(); the image has each name once. */
static int match_symbol(int (*callback)(void *, unsigned long),
			const char *name, void *data)
{
	char *at = symbol_or_null(name, 'k');

	return at ? callback(data, (unsigned long)at) : 0;
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

STUB(bool, try_module_get, void *module)
{
	return true;
}

STUB(void *, kobject_create_and_add, const char *name, void *parent)
{
	return require_memory(PAGE);
}

/*
 * What does nothing, and succeeds: there is one task, nothing to wait for, and
 * no file. A rate limit lets no message through.
 */
STUB(long, nothing, void)
{
	return 0;
}

STUB_AS(mutex_lock, nothing);
STUB_AS(mutex_lock_interruptible, nothing);
STUB_AS(mutex_unlock, nothing);
STUB_AS(msleep, nothing);
STUB_AS(synchronize_rcu_tasks, nothing);
STUB_AS(free_percpu, nothing);
STUB_AS(ftrace_free_filter, nothing);
STUB_AS(___ratelimit, nothing);
STUB_AS(kobject_del, nothing);
STUB_AS(kobject_put, nothing);
STUB_AS(sysfs_create_files, nothing);
