// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the library asks of its machine, answered by the model: the linker wraps
 * the calls, and the library is that of the other tests, unmodified.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "../../../lib/populate/populate.h"
#include "machine.h"
#include "scheduler.h"

#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static struct extent_of {
	uintptr_t start, end;
	size_t page;
	unsigned int node;
} memory[MAPPINGS];
static unsigned int memory_nr;

void forget_memory(void)
{
	memory_nr = 0;
}

void map_memory(uintptr_t start, size_t len, size_t page, unsigned int node)
{
	memory[memory_nr++] = (struct extent_of){ start, start + len, page,
						  node };
}

static const struct extent_of *memory_at(uintptr_t addr)
{
	unsigned int i;

	for (i = 0; i < memory_nr; i++)
		if (addr < memory[i].end)
			return &memory[i];
	return NULL;
}

/* Clears page after page with the lock held, as the kernel does. */
static long populate_memory(uintptr_t from, size_t len)
{
	const struct extent_of *of = memory_at(from);

	read_lock();
	clear_memory(len, of->node);
	read_unlock();
	return 0;
}

WRAPPED(long, syscall, long nr, ...)
{
	long arg[6];
	va_list args;
	int i;

	va_start(args, nr);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	switch (nr) {
	case SYS_madvise:
		if (memory_at((uintptr_t)arg[0]) && arg[0] >= (long)TIB)
			return populate_memory((uintptr_t)arg[0],
					       (size_t)arg[1]);
		errno = ENOMEM; /* there is nothing else */
		return -1;
	case SYS_get_mempolicy:
		*(int *)arg[0] = MODE_DEFAULT;
		return 0;
	case SYS_set_mempolicy:
		return 0;
	default:
		return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3],
				      arg[4], arg[5]);
	}
}

WRAPPED(bool, maps_open, struct maps *maps)
{
	maps->fd = -1;
	return true;
}

WRAPPED(bool, map_find, struct maps *maps, uintptr_t addr, bool cheap,
	struct map *map)
{
	const struct extent_of *of = memory_at(addr);

	(void)maps;
	(void)cheap;
	if (!of)
		return false;
	*map = (struct map){ of->start, of->end, of->page,
			     READABLE | WRITABLE | SHARED | UNWATCHED };
	return true;
}

WRAPPED(bool, nodes_several, void)
{
	return model.nodes > 1;
}

WRAPPED(bool, nodes_online, unsigned int node)
{
	return node < model.nodes;
}

WRAPPED(int, nodes_of, const void *addr, struct nodes *nodes)
{
	SET_ADD(nodes, memory_at((uintptr_t)addr)->node);
	return -1;
}

WRAPPED(unsigned int, cpus_allowed, struct cpus *cpus)
{
	unsigned int i;

	memset(cpus, 0, sizeof(*cpus));
	for (i = 0; i < model.cpus; i++)
		SET_ADD(cpus, i);
	return model.cpus;
}

/* CPU by CPU, the nodes take turns. */
WRAPPED(unsigned int, cpus_of_nodes, const struct nodes *nodes,
	struct cpus *cpus)
{
	unsigned int i;

	memset(cpus, 0, sizeof(*cpus));
	for (i = 0; i < model.cpus; i++)
		if (SET_HAS(nodes, i % model.nodes))
			SET_ADD(cpus, i);
	return SET_COUNT(cpus);
}

WRAPPED(void, cpus_bind, const struct cpus *cpus)
{
	unsigned int i;

	bind_task(-1);
	for (i = 0; i < model.nodes && SET_COUNT(cpus) < model.cpus; i++)
		if (SET_HAS(cpus, i))
			bind_task((int)i);
}

WRAPPED(unsigned int, cpus_quota, void)
{
	return 0;
}

WRAPPED(uint64_t, bmm_host_clock, void)
{
	return now;
}

WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = (time_t)(now / 1000000000);
	time->tv_nsec = (long)(now % 1000000000);
	return 0;
}

WRAPPED(int, getrusage, int who, struct rusage *usage)
{
	(void)who;
	memset(usage, 0, sizeof(*usage));
	return 0;
}

/* A change of the address space waits for all that read it. */
WRAPPED(void *, mmap64, void *addr, size_t len, int prot, int flags, int fd,
	off_t at)
{
	void *result;

	write_lock();
	result = __real_mmap64(addr, len, prot, flags, fd, at);
	write_unlock();
	return result;
}

WRAPPED(int, mprotect, void *addr, size_t len, int prot)
{
	int result;

	write_lock();
	sleep_task(1000);
	result = __real_mprotect(addr, len, prot);
	write_unlock();
	return result;
}

/* As glibc does: a stack that the program has not mapped is mapped here. */
WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
	void *(*run)(void *), void *arg)
{
	void *stack = NULL;
	size_t size = 0;

	pthread_attr_getstack(attr, &stack, &size);
	if (!stack) {
		write_lock();
		size = size ? size : MIB;
		stack = malloc(size);
		write_unlock();
	}
	sleep_task(model.create_ns);
	*thread = (pthread_t)start_task(run, arg, stack, size);
	return 0;
}

WRAPPED(int, pthread_join, pthread_t thread, void **result)
{
	(void)result;
	join_task((struct task *)thread);
	return 0;
}

/* No task is suspended between these two, but for the wait below. */
WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

WRAPPED(int, pthread_cond_signal, pthread_cond_t *changed)
{
	wake_tasks(changed);
	return 0;
}

WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *changed,
	pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t end = (uint64_t)until->tv_sec * 1000000000 +
		       (uint64_t)until->tv_nsec;

	(void)mutex;
	return wait_task(changed, end) ? 0 : ETIMEDOUT;
}
