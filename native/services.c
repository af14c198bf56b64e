// SPDX-License-Identifier: GPL-2.0-only
/*
 * The services of a running kernel that the module uses, for a process: memory,
 * clocks, printk, locks and waiting, work, kprobes, ftrace, sysfs. A function
 * stub_NAME replaces the kernel's NAME wherever the module calls it; everything
 * else that the module calls is the kernel's own code.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define STUB(type, name, ...)          \
	type stub_##name(__VA_ARGS__); \
	type stub_##name(__VA_ARGS__)

#define SITES_MAX  16
#define OTHERS_MAX 32
#define PERCPU	   ((size_t)1 << 16) /* bytes for all of the module */
#define CALL	   0xe8
#define JUMP	   0xe9

/* A patch site that the module has registered a trampoline for. */
struct site {
	void *ops;
	char *at;
	char *target; /* NULL: not attached */
};

static struct site sites[SITES_MAX];
static size_t sites_count;
static bool quiet;

static const char nop[NEAR] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

static void near_write(char *at, unsigned char opcode, const char *to)
{
	int32_t distance = (int32_t)(to - (at + NEAR));

	*(unsigned char *)at = opcode;
	memcpy(at + 1, &distance, sizeof(distance));
}

static char *behind_endbr(char *at)
{
	return memcmp(at, endbr, sizeof(endbr)) ? at : at + sizeof(endbr);
}

/**
 * divert() - redirect the kernel's own calls of a function
 * @name: the function
 * @to:   a function of the harness
 */
void divert(const char *name, void *to)
{
	near_write(behind_endbr(symbol(name)), JUMP, to);
}

/**
 * divert_keep() - the same, to a function that calls the original
 * @name: the function
 * @to:   a function of the harness
 *
 * Return: the address of the original after its patch site.
 */
char *divert_keep(const char *name, void *to)
{
	char *at = behind_endbr(symbol(name));

	if (memcmp(at, nop, NEAR))
		die("%s has no patch site", name);
	near_write(at, JUMP, to);
	return at + NEAR;
}

/**
 * sites_write() - switch all hooks that the module has attached on or off
 * @on: whether the patch sites call the trampolines
 */
void sites_write(bool on)
{
	size_t i;

	for (i = 0; i < sites_count; i++) {
		if (on && sites[i].target)
			near_write(sites[i].at, CALL, sites[i].target);
		else
			memcpy(sites[i].at, nop, NEAR);
	}
}

/* How many are attached. */
size_t sites_nr(void)
{
	size_t i, nr = 0;

	for (i = 0; i < sites_count; i++)
		nr += !!sites[i].target;
	return nr;
}

/* Whether to suppress log messages. */
void services_quiet(bool on)
{
	quiet = on;
}

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

STUB(void, kfree, void *at)
{
	free(at);
}

STUB(void *, vmalloc_noprof, unsigned long size)
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

STUB(void, free_percpu, void *at)
{
}

/* Log */

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
	fprintf(stderr, "log: %s", line[0] == 1 ? line + 2 : line); /* level */
	return 0;
}

/* Messages of the kernel's own code go the same way. */
void services_init(void)
{
	divert("_printk", stub__printk);
	divert("__warn_printk", stub__printk);
}

/* Locks, waiting, work: there is one task, and threads that do its work. */

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

/* Work done concurrently: one thread each, all with the one CPU's memory. */
static struct other {
	pthread_t thread;
	void *work; /* NULL: free */
	int caller; /* CPU */
} others[OTHERS_MAX];

static struct other *other_of(const void *work)
{
	size_t i;

	for (i = 0; i < OTHERS_MAX; i++)
		if (others[i].work == work)
			return &others[i];
	return NULL;
}

static void work_run(void *work)
{
	void (*run)(void *) = AT(void *, work, OFFSET("work_struct.func"));

	run(work);
}

/* Like a scheduler with an idle CPU: not on the caller's. */
static void other_place(const struct other *other)
{
	cpu_set_t may;

	if (sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) < 2)
		return;
	CPU_CLR(other->caller, &may);
	sched_setaffinity(0, sizeof(may), &may);
}

static void *other_main(void *other)
{
	other_place(other);
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, fact("gs")))
		die("GS cannot be set: %s", strerror(errno));
	work_run(((struct other *)other)->work);
	return NULL;
}

STUB(bool, queue_work_node, int node, void *queue, void *work)
{
	struct other *other = other_of(NULL);

	if (!other)
		return false;
	*other = (struct other){ .work = work, .caller = sched_getcpu() };
	if (!pthread_create(&other->thread, NULL, other_main, other))
		return true;
	other->work = NULL;
	return false;
}

STUB(bool, cancel_work_sync, void *work)
{
	struct other *other = other_of(work);

	if (!other)
		return false;
	pthread_join(other->thread, NULL);
	other->work = NULL;
	return false;
}

STUB(bool, queue_work_on, int cpu, void *queue, void *work)
{
	work_run(work);
	return true;
}

/* Text */

STUB(void, __static_call_update, void *key, void *trampoline, void *function)
{
	AT(void *, key, OFFSET("static_call_key.func")) = function;
	near_write(trampoline, JUMP, function);
}

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

/* The only symbol that the module looks up by a kprobe. */
STUB(int, register_kprobe, void *probe)
{
	const char *name = AT(char *, probe, OFFSET("kprobe.symbol_name"));

	if (strcmp(name, "kallsyms_on_each_match_symbol"))
		return -ENOENT;
	AT(void *, probe, OFFSET("kprobe.addr")) = match_symbol;
	return 0;
}

STUB(void, unregister_kprobe, void *probe)
{
}

/* Patch sites are given by their last byte. */
STUB(int, ftrace_set_filter_ip, void *ops, char *last, int remove, int reset)
{
	char *at = last - (NEAR - 1);
	size_t i;

	for (i = 0; i < sites_count; i++)
		if (sites[i].at == at) /* of an earlier module state */
			return 0;
	if (memcmp(at, nop, NEAR))
		return -EINVAL;
	if (sites_count == SITES_MAX)
		return -ENOMEM;
	sites[sites_count++] = (struct site){ .ops = ops, .at = at };
	return 0;
}

STUB(void, ftrace_free_filter, void *ops)
{
}

static int sites_point(const void *ops, char *target)
{
	size_t i;

	for (i = 0; i < sites_count; i++)
		if (sites[i].ops == ops)
			sites[i].target = target;
	sites_write(true);
	return 0;
}

STUB(int, register_ftrace_direct, void *ops, char *target)
{
	return sites_point(ops, target);
}

STUB(int, unregister_ftrace_direct, void *ops, char *target, bool free_filter)
{
	return sites_point(ops, NULL);
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

/* The only file that the module reads is the kernel's command line. */
STUB(void *, filp_open, const char *name, int flags, unsigned short mode)
{
	return need(1);
}

STUB(int, filp_close, void *file, void *owner)
{
	free(file);
	return 0;
}

STUB(long, kernel_read, void *file, char *text, size_t size, long long *at)
{
	static const char line[] = "ro quiet\n";

	memcpy(text, line, sizeof(line) - 1);
	return sizeof(line) - 1;
}
