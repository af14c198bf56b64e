// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * bmm_populate() and bmm_clear_parallel() by cases: bmm-cases NAME. Ends with 0
 * if all is as it must be; else says what is not, and ends with 1. What needs a
 * machine of another kind (many CPUs, a kernel without MADV_POPULATE_WRITE, no
 * thread to be had) has it made: a filter of system calls, or functions of the
 * C library that the linker wraps.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/populate/populate.h"

#define PAGE	     ((size_t)4096)
#define POPULATE     23 /* MADV_POPULATE_WRITE */
#define OPTIONS(...) { .size = sizeof(struct bmm_options), __VA_ARGS__ }
#define REPORT	     { .size = sizeof(struct bmm_report) }

static const char *current = "";
static int wrong;

#define check(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			printf("%s: line %d: %s\n", current, __LINE__, #what); \
			wrong = 1;                                             \
		}                                                              \
	} while (0)

/* What the linker wraps. */
static unsigned int cpus_made;	/* pretended, 0: as they are */
static int creations = 1 << 30; /* of threads, before they fail */
static unsigned int created;
static long sleep_us; /* of each call that populates, instead of it */
static bool in_turn;  /* and one at a time */
static uintptr_t stall_at;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

int __real_pthread_create(pthread_t *, const pthread_attr_t *,
			  void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *,
			  void *(*)(void *), void *);
long __real_syscall(long, ...);
long __wrap_syscall(long, ...);
int __real_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_getaffinity(pid_t, size_t, cpu_set_t *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (creations-- <= 0)
		return EAGAIN;
	created++;
	return __real_pthread_create(thread, attr, start, arg);
}

static long sleep_instead(uintptr_t addr, size_t len)
{
	long us = sleep_us * (long)(len / MIB + 1);

	if (addr <= stall_at && stall_at < addr + len)
		us = 200000;
	if (in_turn)
		pthread_mutex_lock(&turn);
	usleep((useconds_t)us);
	if (in_turn)
		pthread_mutex_unlock(&turn);
	return 0;
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
	if (nr == SYS_madvise && (int)arg[2] == POPULATE && arg[1] && sleep_us)
		return sleep_instead((uintptr_t)arg[0], (size_t)arg[1]);
	return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
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

/* From now on this system call fails if argument @which is @value. */
static void forbid(unsigned int nr, unsigned int which, uint32_t value,
		   int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[which])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (error == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		puts("no filter of system calls");
		exit(77);
	}
}

static void forbid_advice(void)
{
	forbid(SYS_madvise, 2, POPULATE, EINVAL);
}

/* Before Linux 6.11; the number is in <linux/fs.h> of later headers only. */
static void forbid_query(void)
{
	forbid(SYS_ioctl, 1, 0xc0686611, ENOTTY);
}

/* Before Linux 6.7, likewise. */
static void forbid_scan(void)
{
	forbid(SYS_ioctl, 1, 0xc0606610, ENOTTY);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/*
 * Page faults of a write to each page, which changes nothing. A sanitizer would
 * have memory of its own for each.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static long
faults_of(char *p, size_t len)
{
	volatile char *page = p;
	long before;
	size_t i;

	before = faults();
	before = faults(); /* the first may have one of its own */
	for (i = 0; i < len; i += PAGE)
		page[i] = page[i];
	return faults() - before;
}

static bool is_there(char *p, size_t len)
{
	return faults_of(p, len) <= 2;
}

static bool is_zero(const char *p, size_t len)
{
	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

static char *map(size_t len, int flags, int fd)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(77);
	}
	return p;
}

static char *anonymous(size_t len)
{
	char *p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

static int memfd(size_t len)
{
	int fd = memfd_create("cases", 0);

	check(fd >= 0 && !ftruncate(fd, (off_t)len));
	return fd;
}

static const size_t sizes[] = {
	PAGE,	  5 * PAGE,	      MIB, 7 * MIB + PAGE, 63 * MIB,
	64 * MIB, 97 * MIB + 3 * PAGE
};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void fill_one(char *p, size_t len)
{
	struct bmm_report report = REPORT;

	p[0] = 1;
	p[len - 1] = 2;
	p[len / 2] = 3;
	check(!bmm_populate(p, len, NULL, &report));
	check(report.done == len && report.reached == p + len);
	check(!report.error && !report.cause && !report.failed_len);
	check(report.threads >= 1 && report.size == sizeof(report));
	check(len >= 64 * MIB || report.threads == 1);
	check(is_there(p, len));
	check(p[len - 1] == 2 && p[len / 2] == 3 && (p[0] == 1 || len == PAGE));
	p[0] = p[len - 1] = p[len / 2] = 0;
	check(is_zero(p, len));
	check(!bmm_populate(p, len, NULL, NULL)); /* all of it there already */
}

static void kinds(void)
{
	size_t i, len;
	char *p;
	int fd;

	for (i = 0; i < SIZES; i++) {
		len = sizes[i];
		p = anonymous(len);
		fill_one(p, len);
		munmap(p, len);
		p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		madvise(p, len, MADV_HUGEPAGE);
		fill_one(p, len);
		munmap(p, len);
		p = map(len, MAP_SHARED | MAP_ANONYMOUS, -1);
		fill_one(p, len);
		munmap(p, len);
		fd = memfd(len);
		p = map(len, MAP_PRIVATE, fd);
		fill_one(p, len);
		munmap(p, len);
		p = map(len, MAP_SHARED, fd);
		fill_one(p, len);
		munmap(p, len);
		close(fd);
	}
}

/* What the kernel says to the whole range, which must be what we say. */
static int native(char *p, size_t len)
{
	return madvise(p, len, POPULATE) ? -errno : 0;
}

static void expect(char *p, size_t len, size_t good, enum bmm_cause cause,
		   int error)
{
	struct bmm_report report = REPORT;
	char text[256];

	check(bmm_populate(p, len, NULL, &report) == error);
	check(report.error == error && report.cause == cause);
	check(report.failed == p + good);
	check(report.failed_len == PAGE);
	check(report.reached == p + good);
	check(report.done >= good);
	check(good == 0 || is_there(p, good));
	check(bmm_report_text(&report, text, sizeof(text)) == strlen(text));
	check(strstr(text, "bytes at 0x") && strstr(text, "are done"));
}

static void bad_ranges(void)
{
	static const size_t lens[] = { 3 * PAGE, 5 * MIB, 96 * MIB };
	size_t i, len, at;
	char *p;
	int fd;

	for (i = 0; i < 3; i++) {
		len = lens[i];
		at = len / 3 * 2 / PAGE * PAGE;
		p = anonymous(len);
		munmap(p + at, PAGE);
		expect(p, len, at, BMM_CAUSE_HOLE, -ENOMEM);
		munmap(p, len);
		p = anonymous(len);
		mprotect(p + at, PAGE, PROT_READ);
		expect(p, len, at, BMM_CAUSE_PROTECTED, -EINVAL);
		munmap(p, len);
		p = anonymous(len);
		mprotect(p, PAGE, PROT_NONE);
		expect(p, len, 0, BMM_CAUSE_PROTECTED, -EINVAL);
		munmap(p, len);
		p = anonymous(len);
		check(!bmm_populate(p, len, NULL, NULL));
		mprotect(p + at, PAGE, PROT_READ); /* there, and forbidden */
		expect(p, len, at, BMM_CAUSE_PROTECTED, -EINVAL);
		munmap(p, len);
		fd = memfd(at);
		p = map(len, MAP_SHARED, fd);
		expect(p, len, at, BMM_CAUSE_BACKING, -EFAULT);
		munmap(p, len);
		close(fd);
	}
}

static void kernels_own_errors(void)
{
	char *p = anonymous(8 * PAGE);
	int fd = memfd(PAGE);

	munmap(p + PAGE, PAGE);
	check(native(p, 8 * PAGE) == -ENOMEM);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	check(native(p + 2 * PAGE, PAGE) == -EINVAL);
	p = map(2 * PAGE, MAP_SHARED, fd);
	check(native(p, 2 * PAGE) == -EFAULT);
}

static void refused(int said, int error, const struct bmm_report *report,
		    enum bmm_cause cause)
{
	check(said == error && report->error == error);
	check(report->cause == cause && !report->done && !report->failed_len);
}

static void arguments(void)
{
	struct {
		struct bmm_options options;
		uint64_t more;
	} newer = { OPTIONS(.flags = 0), 0 };
	struct bmm_options options = OPTIONS(.flags = 0);
	struct bmm_report report = REPORT;
	char *p = anonymous(4 * PAGE);

	refused(bmm_populate(p, 0, NULL, &report), 0, &report, BMM_CAUSE_NONE);
	check(report.reached == p);
	check(!bmm_populate(NULL, 0, NULL, NULL));
	refused(bmm_populate(p + 8, PAGE, NULL, &report), -EINVAL, &report,
		BMM_CAUSE_ARGUMENT);
	refused(bmm_populate(p, -PAGE, NULL, &report), -EINVAL, &report,
		BMM_CAUSE_ARGUMENT);
	refused(bmm_populate(p, SIZE_MAX - (uintptr_t)p, NULL, &report),
		-EINVAL, &report, BMM_CAUSE_ARGUMENT);
	options.flags = 0x80;
	refused(bmm_populate(p, PAGE, &options, &report), -EINVAL, &report,
		BMM_CAUSE_ARGUMENT);
	options.flags = 0;
	options.size = 8;
	refused(bmm_populate(p, PAGE, &options, &report), -EINVAL, &report,
		BMM_CAUSE_ARGUMENT);
	newer.options.size = sizeof(newer);
	check(faults_of(p, 4 * PAGE) >= 4); /* nothing was done so far */
	check(!bmm_populate(p, PAGE, &newer.options, &report));
	newer.more = 1;
	refused(bmm_populate(p, PAGE, &newer.options, &report), -E2BIG, &report,
		BMM_CAUSE_ARGUMENT);
	report.size = 4;
	check(bmm_populate(p, PAGE, NULL, &report) == -EINVAL);
	report.size = sizeof(report);
	check(!bmm_populate(p, PAGE + 1, NULL,
			    &report)); /* to the page's end */
	check(report.done == 2 * PAGE);
	options = (struct bmm_options)OPTIONS(.flags = BMM_ON_NODE, .node = 999);
	refused(bmm_populate(p, PAGE, &options, &report), -EINVAL, &report,
		BMM_CAUSE_NODE);
	options.node = UINT32_MAX;
	refused(bmm_populate(p, PAGE, &options, &report), -EINVAL, &report,
		BMM_CAUSE_NODE);
	refused(bmm_clear_parallel(p, PAGE, &options, &report), -EINVAL,
		&report, BMM_CAUSE_ARGUMENT);
	check(!bmm_clear_parallel(NULL, 0, NULL, NULL));
}

/* A fork's pages and the page of zeroes are present, and yet not there. */
static void present_pages(bool huge)
{
	size_t len = 96 * MIB, i;
	char *p = anonymous(len + 2 * MIB);
	int status;
	pid_t child;

	p += -(uintptr_t)p & (2 * MIB - 1);
	if (huge)
		madvise(p, len, MADV_HUGEPAGE);
	for (i = 0; i < len; i += PAGE)
		check(!((volatile char *)p)[i]);
	check(!bmm_populate(p, len, NULL, NULL));
	check(is_there(p, len));
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	check(!bmm_populate(p, len, NULL, NULL));
	check(is_there(p, len));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	munmap(p, len);
	p = anonymous(len); /* every second page is there */
	for (i = 0; i < len; i += 2 * PAGE)
		p[i] = 1;
	check(!bmm_populate(p, len, NULL, NULL));
	check(is_there(p, len));
	for (i = 0; i < len; i += 2 * PAGE)
		check(p[i] == 1 && !p[i + PAGE]);
}

static void present(void)
{
	present_pages(false);
}

static void present_huge(void)
{
	present_pages(true);
}

static void on_node(void)
{
	struct bmm_options options = OPTIONS(.flags = BMM_ON_NODE, .node = 0);
	int before = -1, after = -1;
	size_t i;
	char *p;

	for (i = 0; i < SIZES; i++) {
		p = anonymous(sizes[i]);
		check(!bmm_populate(p, sizes[i], &options, NULL));
		check(is_there(p, sizes[i]));
		munmap(p, sizes[i]);
	}
	syscall(SYS_get_mempolicy, &after, NULL, 0, NULL, 0);
	check(after == 0 && before == -1); /* as at the start of a program */
}

static void no_policies(void)
{
	struct bmm_options options = OPTIONS(.flags = BMM_ON_NODE, .node = 0);
	struct bmm_report report = REPORT;
	char *p = anonymous(96 * MIB);

	forbid(SYS_set_mempolicy, 0, 2, EPERM);
	refused(bmm_populate(p, 96 * MIB, &options, &report), -EPERM, &report,
		BMM_CAUSE_NODE);
	check(faults_of(p, MIB) > 200);
	check(!bmm_populate(p, 96 * MIB, NULL, NULL));
	check(is_there(p, 96 * MIB));
}

struct seen {
	size_t last, len, calls, stop_at;
	pthread_t thread;
	bool fork;
	pid_t child;
};

static int see(void *context, size_t done, size_t len)
{
	struct seen *seen = context;

	check(pthread_equal(seen->thread, pthread_self()));
	check(done >= seen->last && done <= len && len == seen->len);
	seen->last = done;
	seen->calls++;
	if (seen->fork && !seen->child)
		seen->child = fork() ?: -1;
	return seen->stop_at && done >= seen->stop_at;
}

static void progress(void)
{
	size_t len = 96 * MIB;
	struct seen seen = { .len = len, .thread = pthread_self() };
	struct bmm_options options = OPTIONS(.progress = see, .context = &seen);
	struct bmm_report report = REPORT;
	char *p = anonymous(len);

	cpus_made = 4;
	check(!bmm_populate(p, len, &options, &report));
	check(seen.calls >= 1 && seen.last == len);
	madvise(p, len, MADV_DONTNEED);
	sleep_us = 4000;
	seen = (struct seen){ .len = len,
			      .thread = pthread_self(),
			      .stop_at = 16 * MIB };
	check(bmm_populate(p, len, &options, &report) == -ECANCELED);
	check(report.cause == BMM_CAUSE_CANCELLED && !report.failed_len);
	check(report.done >= 16 * MIB && report.done < len);
	check((size_t)((char *)report.reached - p) == report.done);
}

static void fork_in_progress(void)
{
	size_t len = 96 * MIB;
	struct seen seen = { .len = len,
			     .thread = pthread_self(),
			     .fork = true };
	struct bmm_options options = OPTIONS(.progress = see, .context = &seen);
	struct bmm_report report = REPORT;
	char *p = anonymous(len);
	int said, status = -1;

	cpus_made = 4;
	sleep_us = 500;
	alarm(20);
	said = bmm_populate(p, len, &options, &report);
	if (seen.child == -1) /* here is the child */
		_exit(said == -ECHILD && report.cause == BMM_CAUSE_FORKED ? 7 :
									    8);
	check(!said && seen.child > 0);
	check(waitpid(seen.child, &status, 0) == seen.child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static int over; /* atomic */

static void *forks(void *arg)
{
	int status, count = 0;
	char *p = arg;
	pid_t child;

	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST) || count < 3) {
		child = fork();
		if (!child) /* what is populated so far can be used */
			_exit(*(volatile char *)p);
		check(waitpid(child, &status, 0) == child && !status);
		count++;
	}
	return NULL;
}

static void fork_elsewhere(void)
{
	size_t len = 256 * MIB;
	char *p = anonymous(len);
	pthread_t thread;

	check(!__real_pthread_create(&thread, NULL, forks, p));
	check(!bmm_populate(p, len, NULL, NULL));
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	check(is_zero(p, len));
}

static pthread_t main_thread;
static volatile sig_atomic_t alarms, elsewhere;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
	elsewhere += !pthread_equal(pthread_self(), main_thread);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	size_t len = 96 * MIB;
	sigset_t before, after;
	char *p = anonymous(len);
	int i;

	main_thread = pthread_self();
	cpus_made = 8;
	sigprocmask(SIG_SETMASK, NULL, &before);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 20; i++) {
		check(!bmm_populate(p, len, NULL, NULL));
		madvise(p, len, MADV_DONTNEED);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigprocmask(SIG_SETMASK, NULL, &after);
	check(alarms > 10 && !elsewhere);
	check(!memcmp(&before, &after, sizeof(before)));
}

static void *populates(void *arg)
{
	size_t len = 96 * MIB;

	bmm_populate(arg, len, NULL, NULL);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_testcancel();
	return NULL;
}

static void cancelled_thread(void)
{
	char *p = anonymous(96 * MIB);
	pthread_t thread;
	void *result;

	cpus_made = 4;
	sleep_us = 300;
	check(!__real_pthread_create(&thread, NULL, populates, p));
	usleep(2000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	check(over && result == PTHREAD_CANCELED);
}

static unsigned int lines(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned int sum = 0;
	int c;

	while (f && (c = fgetc(f)) != EOF)
		sum += c == '\n';
	if (f)
		fclose(f);
	return sum;
}

static unsigned int open_files(void)
{
	unsigned int sum = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		sum += fcntl(fd, F_GETFD) >= 0;
	return sum;
}

static unsigned int threads_here(void)
{
	unsigned int sum = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %u", &sum);
	if (f)
		fclose(f);
	return sum;
}

/* The C library keeps some stacks of threads for the next ones. */
static void nothing_left(void)
{
	size_t len = 96 * MIB;
	unsigned int maps = 0, files = open_files(), threads = 0, i;
	char *p = anonymous(len + PAGE);
	struct bmm_options alone = OPTIONS(.threads = 1);

	cpus_made = 4;
	munmap(p + len, PAGE);
	for (i = 0; i < 50; i++) {
		check(!bmm_populate(p, len, NULL, NULL));
		madvise(p, len, MADV_DONTNEED);
		check(bmm_populate(p + PAGE, len, NULL, NULL));
		check(!bmm_populate(p, len, &alone, NULL));
		check(!bmm_clear_parallel(p, len, NULL, NULL));
		if (i == 10) {
			maps = lines("/proc/self/maps");
			threads = threads_here(); /* a sanitizer has its own */
		}
	}
	check(lines("/proc/self/maps") <= maps + 4);
	check(open_files() == files);
	check(threads_here() == threads);
}

static void no_files(void)
{
	struct rlimit none = { 0, 0 };
	char *p = anonymous(96 * MIB);

	setrlimit(RLIMIT_NOFILE, &none);
	check(!bmm_populate(p, 96 * MIB, NULL, NULL));
	check(is_there(p, 96 * MIB));
}

/* Threads that sleep: each of them adds as much as the first. */
static void grows(void)
{
	struct bmm_options capped = OPTIONS(.threads = 5);
	struct bmm_report report = REPORT;
	size_t len = 1024 * MIB;
	char *p = anonymous(len);

	cpus_made = 48;
	sleep_us = 100;
	check(!bmm_populate(p, len, NULL, &report));
	check(report.threads >= 8 && report.threads <= 48);
	check(report.done == len);
	check(!bmm_populate(p, len, &capped, &report));
	check(report.threads == 5);
	cpus_made = 3;
	check(!bmm_populate(p, len, NULL, &report));
	check(report.threads == 3);
	created = 0;
	check(!bmm_populate(p, 64 * MIB - PAGE, NULL, &report));
	check(!created && report.threads == 1);
}

/*
 * Bytes that were done by more than @best threads, of @total, with a made-up
 * machine on which all together never get faster than @best of them.
 */
static size_t wasted(unsigned int best, size_t total, unsigned int *last)
{
	size_t done, above = 0, slice = 2 * MIB;
	struct grow grow;
	unsigned int id;

	grow_start(&grow, 64);
	for (done = 0; done < total; grow_next(&grow, done))
		for (id = 0; id < grow.now; id++) {
			uint64_t ns = 200000;

			if (grow.now > best)
				ns = ns * grow.now / best;
			grow_feed(&grow, id, grow.step, slice, ns + done % 977);
			done += slice;
			above += grow.now > best ? slice : 0;
		}
	*last = grow.best;
	return above;
}

static void finds_how_many(void)
{
	static const unsigned int bests[] = { 1, 2, 4, 8, 16, 32, 64 };
	unsigned int last, i;
	size_t above;

	for (i = 0; i < 7; i++) {
		above = wasted(bests[i], 64UL << 30, &last);
		check(last == bests[i]);
		check(above < (64UL << 30) / 5);
		check(bests[i] < 64 || !above);
	}
	wasted(24, 64UL << 30, &last); /* between two steps: no step is half */
	check(last == 32);
}

/* Threads that wait for each other: it takes few to see that more do not pay. */
static void does_not_grow(void)
{
	struct bmm_report report = REPORT;
	size_t len = 512 * MIB;
	char *p = anonymous(len);

	cpus_made = 48;
	sleep_us = 1000;
	in_turn = true;
	check(!bmm_populate(p, len, NULL, &report));
	check(report.threads >= 2 && report.threads <= 8);
	check(report.done == len);
}

static void no_threads(void)
{
	struct bmm_report report = REPORT;
	size_t len = 512 * MIB;
	char *p = anonymous(len);
	unsigned int most;

	cpus_made = 48;
	sleep_us = 1000; /* so that a busy machine gains too */
	for (most = 0; most < 18; most++) {
		creations = (int)most;
		check(!bmm_populate(p, len, NULL, &report));
		check(report.threads <= most + 1);
		check(report.threads == most + 1 || most > 2);
		check(report.done == len && !report.error);
	}
}

static void limit_of_processes(void)
{
	struct rlimit one = { 1, 1 };
	struct bmm_report report = REPORT;
	char *p = anonymous(96 * MIB);

	if (getuid() == 0 && (setgid(65534) || setuid(65534)))
		exit(77);
	check(!setrlimit(RLIMIT_NPROC, &one));
	check(!bmm_populate(p, 96 * MIB, NULL, &report));
	check(report.threads == 1);
	check(is_there(p, 96 * MIB));
}

static void stall(void)
{
	struct bmm_report report = REPORT;
	size_t len = 256 * MIB;
	char *p = anonymous(len);
	char text[256];

	sleep_us = 50;
	stall_at = (uintptr_t)p + 100 * MIB;
	check(!bmm_populate(p, len, NULL, &report));
	check((uintptr_t)report.slow <= stall_at);
	check(stall_at < (uintptr_t)report.slow + report.slow_len);
	check(report.slow_ns >= 200000000 &&
	      report.slow_ns > 8 * report.usual_ns);
	check(report.slow_cause >= BMM_CAUSE_UNKNOWN);
	bmm_report_text(&report, text, sizeof(text));
	check(strstr(text, " took 2") && strstr(text, "elsewhere"));
	stall_at = 0;
	check(!bmm_populate(p, len, NULL, &report));
	check(!report.slow_len);
	check(!bmm_report_text(&report, text, sizeof(text)));
}

static void clears(void)
{
	static const size_t lens[] = { 1, 100, 5 * MIB + 3, 97 * MIB + 5 };
	struct bmm_report report = REPORT;
	size_t i, len;
	char *p;

	cpus_made = 4;
	for (i = 0; i < 4; i++) {
		len = lens[i];
		p = anonymous(len + 2 * PAGE);
		memset(p, 0xa5, len + 2 * PAGE);
		check(!bmm_clear_parallel(p + 77, len, NULL, &report));
		check(report.done == len && report.reached == p + 77 + len);
		check(is_zero(p + 77, len));
		check((p[76] & 255) == 0xa5 && (p[77 + len] & 255) == 0xa5);
		munmap(p, len + 2 * PAGE);
	}
	check(bmm_clear_parallel((char *)8, SIZE_MAX, NULL, NULL) == -EINVAL);
}

/* A range of many mappings, of more kinds than the library tells apart. */
static void many_mappings(void)
{
	size_t len = 96 * MIB, i;
	char *p = anonymous(len);

	for (i = 0; i < 90; i++)
		check(mmap(p + i * MIB, MIB / 2, PROT_READ | PROT_WRITE,
			   MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1,
			   0) != MAP_FAILED);
	check(!bmm_populate(p, len, NULL, NULL));
	check(is_there(p, len));
	check(!bmm_populate(p, len, NULL, NULL));
}

static void reading(void)
{
	struct bmm_options options = OPTIONS(.flags = BMM_READ);
	struct bmm_report report = REPORT;
	size_t len = 96 * MIB;
	char *p = map(len, MAP_SHARED, memfd(len));

	mprotect(p, len, PROT_READ);
	check(!bmm_populate(p, len, &options, &report));
	check(report.done == len && !report.touched);
	forbid(SYS_madvise, 2, 22, EINVAL);
	check(bmm_populate(p, len, &options, &report) == -EOPNOTSUPP);
}

static void poisoned(void)
{
	struct bmm_report report = REPORT;
	size_t len = 4 * MIB;
	char *p = anonymous(len);

	p[MIB] = 1;
	if (madvise(p + MIB, PAGE, MADV_HWPOISON))
		exit(77); /* not root, or the kernel cannot */
	check(bmm_populate(p, len, NULL, &report) == -EHWPOISON);
	check(report.cause == BMM_CAUSE_POISONED && report.failed == p + MIB);
	check(report.reached == p + MIB && report.failed_len == PAGE);
}

/* Of what the test that runs this has prepared; prints what the test judges. */
static void outside(const char *kind, size_t len)
{
	int huge = strcmp(kind, "hugetlb") ? 0 : MAP_HUGETLB | MAP_NORESERVE;
	struct bmm_report report = REPORT;
	char *p;

	if (*kind ==
	    '/') { /* a file, longer than its file system has room for */
		int fd = open(kind, O_RDWR | O_CREAT, 0600);

		check(fd >= 0 && !ftruncate(fd, (off_t)len));
		p = map(len, MAP_SHARED, fd);
	} else {
		p = map(len, MAP_PRIVATE | MAP_ANONYMOUS | huge, -1);
	}
	if (!huge && *kind != '/')
		madvise(p, len, MADV_NOHUGEPAGE);
	bmm_populate(p, len, NULL, &report);
	printf("{\"error\": %d, \"cause\": %d, \"done\": %zu, \"reached\": %zu, "
	       "\"failed\": %zu, \"failed_len\": %zu, \"threads\": %u}\n",
	       -report.error, report.cause, report.done,
	       (size_t)((char *)report.reached - p),
	       report.failed ? (size_t)((char *)report.failed - p) : 0,
	       report.failed_len, report.threads);
}

static const struct {
	const char *name;
	void (*before)(void); /* makes another kernel of this one */
	void (*run)(void);
} cases[] = {
	{ "kinds", NULL, kinds },
	{ "kinds-touched", forbid_advice, kinds },
	{ "kinds-smaps", forbid_query, kinds },
	{ "bad-ranges", NULL, bad_ranges },
	{ "bad-ranges-touched", forbid_advice, bad_ranges },
	{ "bad-ranges-smaps", forbid_query, bad_ranges },
	{ "kernels-own-errors", NULL, kernels_own_errors },
	{ "arguments", NULL, arguments },
	{ "present", NULL, present },
	{ "present-touched", forbid_advice, present },
	{ "present-entries", forbid_scan, present },
	{ "present-huge", NULL, present_huge },
	{ "present-huge-touched", forbid_advice, present_huge },
	{ "kinds-entries", forbid_scan, kinds },
	{ "on-node", NULL, on_node },
	{ "no-policies", NULL, no_policies },
	{ "progress", NULL, progress },
	{ "fork-in-progress", NULL, fork_in_progress },
	{ "fork-elsewhere", NULL, fork_elsewhere },
	{ "signals", NULL, signals },
	{ "cancelled-thread", NULL, cancelled_thread },
	{ "nothing-left", NULL, nothing_left },
	{ "no-files", NULL, no_files },
	{ "grows", NULL, grows },
	{ "finds-how-many", NULL, finds_how_many },
	{ "does-not-grow", NULL, does_not_grow },
	{ "no-threads", NULL, no_threads },
	{ "limit-of-processes", NULL, limit_of_processes },
	{ "stall", NULL, stall },
	{ "clears", NULL, clears },
	{ "many-mappings", NULL, many_mappings },
	{ "reading", NULL, reading },
	{ "poisoned", NULL, poisoned },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 3)
		outside(argv[1], strtoull(argv[2], NULL, 10));
	for (i = 0; i < CASES; i++) {
		if (argc == 1)
			puts(cases[i].name);
		if (argc != 2 || strcmp(argv[1], cases[i].name))
			continue;
		current = cases[i].name;
		if (cases[i].before)
			cases[i].before();
		cases[i].run();
	}
	return wrong;
}
