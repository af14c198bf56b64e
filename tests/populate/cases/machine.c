// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A machine of another kind: functions of the C library that the linker wraps. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

unsigned int cpus_made;
int creations = 1 << 30;
unsigned int created, blocked;
size_t stack_least;
long sleep_us;
bool in_turn;
uintptr_t stall_at;
unsigned int advised, looked, bound;
size_t asked;
uintptr_t barred_from = SIZE_MAX;
uintptr_t cold_from;
unsigned int cold_reads, cold_strays;
bool nodes_made, first_local;
unsigned int strays;
uintptr_t second_node;
const char *cpus_listed;
unsigned int ran[2][2];
unsigned int compaction_made, compaction_before;
unsigned int vmstat_refused, smaps_read;
int collapse_error;
pid_t locker;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* What the C library takes off the stack of each thread: more than ours is. */
__thread char much[300 << 10] __attribute__((__used__));

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	sigset_t now;

	if (creations-- <= 0)
		return EAGAIN;
	created++;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	blocked += (unsigned int)sigismember(&now, SIGTERM);
	return __real_pthread_create(thread, attr, start, arg);
}

long __wrap_sysconf(int name)
{
	if (name == _SC_THREAD_STACK_MIN && stack_least)
		return (long)stack_least;
	return __real_sysconf(name);
}

int __wrap_pthread_attr_setstack(pthread_attr_t *attr, void *stack, size_t size)
{
	if (size < stack_least)
		return EINVAL;
	return __real_pthread_attr_setstack(attr, stack, size);
}

/* Node N has CPU N alone; both have memory, in turn or halves of it. */
static void say_nodes(unsigned long *nodes, uintptr_t addr)
{
	if (first_local && addr < second_node) {
		*nodes = 0;
		return;
	}
	*nodes = second_node == SIZE_MAX ? 3 : 1 + (addr >= second_node);
}

static int made_file(const char *text)
{
	int fd = memfd_create("made", MFD_CLOEXEC);
	size_t len = strlen(text);

	if (pwrite(fd, text, len, 0) != (ssize_t)len)
		abort();
	return fd;
}

static int vmstat_made(void)
{
	static unsigned int made;
	unsigned int failures;
	char text[128];

	if (vmstat_refused) {
		vmstat_refused--;
		errno = EMFILE;
		return -1;
	}
	made += compaction_made;
	failures = compaction_before + made;
	snprintf(text, sizeof(text),
		 "compact_fail %u\nthp_fault_alloc 0\nthp_fault_fallback %u\n",
		 failures, failures);
	return made_file(text);
}

int __wrap_open64(const char *path, int flags, ...)
{
	const char *node = strstr(path, "/node/node");
	const char *list = cpus_listed;
	char name[2] = "";

	if (!strcmp(path, "/proc/self/smaps"))
		__atomic_add_fetch(&smaps_read, 1, __ATOMIC_RELAXED);
	if ((compaction_made || compaction_before) &&
	    !strcmp(path, "/proc/vmstat"))
		return vmstat_made();
	if (!node || (!second_node && !list))
		return __real_open64(path, flags, 0);
	name[0] = node[strlen("/node/node")];
	return made_file(list ? list : name);
}

static void note_cpu(uintptr_t addr)
{
	uint64_t cpus[16] = { 0 };
	int mode = 0;

	__real_syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL);
	if (mode != MODE_PREFERRED)
		__atomic_add_fetch(&strays, 1, __ATOMIC_RELAXED);
	__real_sched_getaffinity(0, sizeof(cpus), (cpu_set_t *)cpus);
	if (cpus[0] == 1 || cpus[0] == 2)
		__atomic_add_fetch(&ran[addr >= second_node][cpus[0] - 1], 1,
				   __ATOMIC_RELAXED);
}

static long sleep_instead(uintptr_t addr, size_t len)
{
	long us = sleep_us * (long)(len / MIB + 1);

	if (second_node)
		note_cpu(addr);
	if (addr <= stall_at && stall_at < addr + len)
		us = 200000;
	if (in_turn)
		pthread_mutex_lock(&turn);
	usleep((useconds_t)us);
	if (in_turn)
		pthread_mutex_unlock(&turn);
	return 0;
}

/* A call that reads a file. */
static long read_cold(const long *arg)
{
	static unsigned int now; /* atomic */
	static uintptr_t last;
	long result;

	if (__atomic_add_fetch(&now, 1, __ATOMIC_SEQ_CST) > 1 ||
	    (uintptr_t)arg[0] < last)
		cold_strays++;
	last = (uintptr_t)arg[0];
	cold_reads++;
	result = __real_syscall(SYS_madvise, arg[0], arg[1], arg[2]);
	__atomic_sub_fetch(&now, 1, __ATOMIC_SEQ_CST);
	return result;
}

long __wrap_syscall(long nr, ...)
{
	long arg[6];
	va_list args;
	int i;

	va_start(args, nr);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (nr == SYS_madvise && arg[0] == PAGE) /* where nothing is mapped */
		return __real_syscall(nr, arg[0], arg[1], arg[2]);
	if (nr == SYS_get_mempolicy && second_node) {
		*(int *)arg[0] = MODE_DEFAULT;
		say_nodes((unsigned long *)arg[1], (uintptr_t)arg[3]);
		return 0;
	}
	if (nr == SYS_madvise && (int)arg[2] == POPULATE && arg[1]) {
		__atomic_add_fetch(&advised, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&asked, (size_t)arg[1], __ATOMIC_RELAXED);
	}
	if (nr == SYS_madvise && (int)arg[2] == COLLAPSE && collapse_error &&
	    (arg[1] || collapse_error == EINVAL)) {
		usleep((useconds_t)sleep_us);
		errno = collapse_error;
		return -1;
	}
	if (nr == SYS_madvise && arg[1] &&
	    (uintptr_t)(arg[0] + arg[1]) > barred_from) {
		errno = EINVAL;
		return -1;
	}
	if (nr == SYS_madvise && cold_from && arg[1] &&
	    (uintptr_t)arg[0] >= cold_from)
		return read_cold(arg);
	if (nr == SYS_madvise && (int)arg[2] == POPULATE && arg[1] && sleep_us)
		return sleep_instead((uintptr_t)arg[0], (size_t)arg[1]);
	return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t at)
{
	__atomic_add_fetch(&looked, len / sizeof(uint64_t), __ATOMIC_RELAXED);
	return __real_pread64(fd, to, len, at);
}

bool __wrap_nodes_several(void)
{
	return nodes_made || __real_nodes_several();
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	__atomic_add_fetch(&bound, 1, __ATOMIC_RELAXED);
	return __real_sched_setaffinity(pid, size, set);
}

/* It would wait for ever where a thread held it that is not here any more. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (locker && locker != getpid())
		_exit(9);
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	unsigned int i;

	if (!cpus_made)
		return __real_sched_getaffinity(pid, size, set);
	memset(set, 0, size);
	for (i = 0; i < cpus_made; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

void forbid_advice(void)
{
	forbid(SYS_madvise, 2, ~0U, POPULATE, 0, EINVAL);
}

/* Before Linux 6.7. */
void forbid_scan(void)
{
	forbid(SYS_ioctl, 1, ~0U, SCAN, 0, ENOTTY);
}
