// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Threads of the C library: how one is started, and when none may be. */
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "populate.h"

#define STACK	 (160 * KIB) /* plus the libraries' TLS; TSan wants 128 */
#define ROOM	 (32 * KIB)
#define SEARCHED (1024 * KIB) /* of a stack, for the frame of a signal */
#define RESTORER 0x04000000UL /* SA_RESTORER, as the kernel has it */
#define SIGNALS	 64

/* Sums up TLS, which comes out of the stack: with too little left, EINVAL. */
static int add_tls(struct dl_phdr_info *object, size_t size, void *sum)
{
	const ElfW(Phdr) * header;
	size_t i;

	(void)size;
	for (i = 0; i < object->dlpi_phnum; i++) {
		header = &object->dlpi_phdr[i];
		if (header->p_type == PT_TLS)
			*(size_t *)sum += header->p_memsz + header->p_align;
	}
	return 0;
}

/* The program's handlers run on its own threads; faults are not blocked. */
static void fill_mask(sigset_t *set)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGSYS };
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(set, faults[i]);
}

#ifdef __GLIBC__
/*
 * Never blocked in the caller: pthread_create() may wait for the program's
 * malloc(). The attribute allocates, as pthread_create() itself does.
 */
static bool create(pthread_t *thread, pthread_attr_t *attr,
		   void *(*run)(void *), void *arg)
{
	sigset_t set;

	fill_mask(&set);
	return !pthread_attr_setsigmask_np(attr, &set) &&
	       !pthread_create(thread, attr, run, arg);
}
#else
/* Blocked in the caller for as long as musl's takes, which allocates nothing. */
static bool create(pthread_t *thread, pthread_attr_t *attr,
		   void *(*run)(void *), void *arg)
{
	sigset_t set, before;
	bool created;

	fill_mask(&set);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	created = !pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return created;
}
#endif

/* Of a thread's stack: no less than the C library accepts, plus TLS. */
static size_t stack_size(size_t page)
{
	long least = sysconf(_SC_THREAD_STACK_MIN); /* arm64: 128 KiB */
	size_t size = STACK;

	if (least > (long)size)
		size = (size_t)least;
	dl_iterate_phdr(add_tls, &size);
	return round_up(size, page);
}

/**
 * map_stacks() - map the stacks of threads, each above a page that guards it
 * @workers: the workers, of which none has been started
 * @count:   how many
 *
 * All at once, before the work: a mapping is changed only when no page is being
 * made, and a huge page takes up to a second.
 *
 * Return: how many there are; fewer if there is no memory for all.
 */
unsigned int map_stacks(struct workers *workers, unsigned int count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), each;
	char *stacks = MAP_FAILED;
	unsigned int i;

	workers->guard = page;
	workers->stack = stack_size(page);
	each = workers->guard + workers->stack;
	for (; count; count /= 2) {
		stacks = mmap(NULL, count * each, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (stacks != MAP_FAILED)
			break;
	}
	if (stacks == MAP_FAILED)
		return 0;
	for (i = 0; i < count; i++)
		if (mprotect(stacks + i * each + page, workers->stack,
			     PROT_READ | PROT_WRITE))
			break;
	workers->stacks = stacks;
	workers->stacks_len = count * each;
	workers->stacks_nr = i;
	return i;
}

/*
 * Whether the calling thread has stack enough for the work and for the C
 * library to start another: what that takes for TLS besides the libraries' can
 * be set (glibc.rtld.optional_static_tls), and is not told.
 */
__attribute__((noinline)) bool has_room(const struct worker *worker)
{
	const struct workers *workers = worker->workers;
	uintptr_t top = (uintptr_t)workers->stacks +
			worker->id * (workers->guard + workers->stack);

	return (uintptr_t)__builtin_frame_address(0) + workers->stack >=
	       top + ROOM;
}

void unmap_stacks(struct workers *workers)
{
	if (workers->stacks)
		munmap(workers->stacks, workers->stacks_len);
}

bool start_thread(struct workers *workers, struct worker *worker,
		  void *(*run)(void *))
{
	size_t each = workers->guard + workers->stack;
	char *stack = workers->stacks + (worker->id - 1) * each;
	pthread_attr_t attr;
	bool started;

	pthread_attr_init(&attr);
	started = !pthread_attr_setstack(&attr, stack + workers->guard,
					 workers->stack) &&
		  create(&worker->thread, &attr, run, worker);
	pthread_attr_destroy(&attr);
	return started;
}

/* As rt_sigaction(2) has it. */
struct action {
	uintptr_t handler; /* 0 and 1 are none */
	unsigned long flags;
	uintptr_t restorer;
	uint64_t more[16];
};

/* Where a handler returns to that was installed with this action. */
struct way {
	uintptr_t from, to;
};

static struct way way_back(const struct action *action)
{
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);

	if (action->flags & RESTORER)
		return (struct way){ action->restorer, action->restorer + 1 };
	return (struct way){
		vdso, vdso + (vdso ? 2 * (size_t)sysconf(_SC_PAGESIZE) : 0)
	};
}

/*
 * Whether that is a frame of the kernel's: on x86-64 its address is followed by
 * flags, which are never 0, and by no link. Where the address is in a register,
 * the handler has put it anywhere, on arm64 maybe signed.
 */
static bool is_frame(const uintptr_t *word, struct way way)
{
	uintptr_t address = word[0] & (((uintptr_t)1 << 48) - 1);

	if (address < way.from || address >= way.to)
		return false;
#ifdef __x86_64__
	return word[1] && word[1] < 16 && !word[2];
#else
	return true;
#endif
}

/* Whether the stack has one from @start on; true if it cannot be read. */
static bool is_on_stack(uintptr_t start, struct way way)
{
	uintptr_t words[128 + 2], at; /* the stack may be a little one */
	size_t step = 128 * sizeof(*words), i;
	struct iovec to = { words, sizeof(words) }, from = to;
	long got = 0;

	for (at = start; at < start + SEARCHED; at += step) {
		from.iov_base = (void *)at;
		got = syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from,
			      1UL, 0UL);
		if (got <= 0)
			break; /* the end of the stack */
		for (i = 0; i < 128 && i + 2 < (size_t)got / sizeof(*words); i++)
			if (is_frame(words + i, way))
				return true;
	}
	return got < 0 && at == start;
}

/**
 * in_handler() - whether a signal handler is running on this thread
 *
 * It may have interrupted malloc(), which pthread_create() would wait for, for
 * ever. A handler blocks its own signal, and the address that it returns to is
 * on the stack: a blocked signal alone says nothing, as many threads block some
 * that others handle. The action may have been reset (SA_RESETHAND, or by the
 * handler); then the kernel keeps the restorer, where there are any (x86-64).
 * One that does not block its own (SA_NODEFER) is not seen; what an earlier one
 * left on the stack may be, which costs the threads.
 */
__attribute__((noinline)) bool in_handler(void)
{
	uintptr_t start = (uintptr_t)__builtin_frame_address(0);
	uintptr_t before = 0;
	struct action action;
	uint64_t blocked = 0;
	struct way way;
	int number;

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, 8UL))
		return true;
	for (number = 1; number <= SIGNALS; number++) {
		if (!(blocked >> (number - 1) & 1) ||
		    syscall(SYS_rt_sigaction, number, NULL, &action, 8UL) ||
		    (action.handler <= 1 && !(action.flags & RESTORER)))
			continue;
		way = way_back(&action);
		if (way.from != before && is_on_stack(start, way))
			return true;
		before = way.from; /* usually the same for all */
	}
	return false;
}
