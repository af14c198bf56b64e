// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the rest of a process does meanwhile, and what is left of it all. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

struct seen {
	size_t last, len, calls, stop_at;
	pthread_t thread;
	bool fork, cancel; /* the child does */
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
	if (seen->child == -1 && seen->cancel)
		return 1;
	return seen->stop_at && done >= seen->stop_at;
}

CASE(progress, HERE)
{
	struct seen seen = { .len = LEN, .thread = pthread_self() };
	struct bmm_options options = OPTIONS(.progress = see, .context = &seen);
	struct bmm_report report = REPORT;
	char *p = anonymous(LEN);

	cpus_made = 4;
	all_of(p, LEN, &options);
	check(seen.calls >= 1 && seen.last == LEN);
	madvise(p, LEN, MADV_DONTNEED);
	sleep_us = 4000;
	seen = (struct seen){ .len = LEN,
			      .thread = pthread_self(),
			      .stop_at = 16 * MIB };
	check(bmm_populate(p, LEN, &options, &report) == -ECANCELED);
	check(report.cause == BMM_CAUSE_CANCELLED && !report.failed_len);
	check(report.done >= 16 * MIB && report.done < LEN);
	check((size_t)((char *)report.reached - p) == report.done);
}

static void fork_within(bool cancel)
{
	struct seen seen = { .len = LEN,
			     .thread = pthread_self(),
			     .fork = true,
			     .cancel = cancel };
	struct bmm_options options = OPTIONS(.progress = see, .context = &seen);
	struct bmm_report report = REPORT;
	char *p = anonymous(LEN);
	int said, status = -1;

	cpus_made = 4;
	sleep_us = 500;
	locker = getpid();
	alarm(20);
	said = bmm_populate(p, LEN, &options, &report);
	if (seen.child == -1) /* here is the child */
		_exit(said == -ECHILD && report.cause == BMM_CAUSE_FORKED &&
				      report.reached == p ?
			      7 :
			      8);
	check(!said && seen.child > 0);
	check(waitpid(seen.child, &status, 0) == seen.child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

CASE(fork_in_progress, HERE)
{
	fork_within(false);
	fork_within(true);
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

CASE(fork_elsewhere, HERE)
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

CASE(signals, HERE)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	sigset_t before = { 0 }, after = { 0 }; /* not set whole */
	char *p = anonymous(LEN);
	int i;

	main_thread = pthread_self();
	cpus_made = 8;
	sigprocmask(SIG_SETMASK, NULL, &before);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 20; i++) {
		check(!bmm_populate(p, LEN, NULL, NULL));
		madvise(p, LEN, MADV_DONTNEED);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigprocmask(SIG_SETMASK, NULL, &after);
	check(alarms > 10 && !elsewhere && created && !blocked);
	check(!memcmp(&before, &after, sizeof(before)));
}

static void *populates(void *arg)
{
	static const struct bmm_options on_node = OPTIONS(.flags = BMM_ON_NODE),
					read = OPTIONS(.flags = BMM_READ);

	pthread_cancel(pthread_self());
	check(!bmm_populate(arg, LEN, NULL, NULL));
	/* looks at the first page */
	check(!bmm_populate(arg, 32 * MIB, &read, NULL));
	check(!bmm_populate(arg, LEN, &on_node, NULL));
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_testcancel();
	return NULL;
}

CASE(cancelled_thread, HERE)
{
	char *p = anonymous(LEN);
	pthread_t thread;
	void *result;

	*p = 1;
	cpus_made = 4;
	sleep_us = 300;
	check(!__real_pthread_create(&thread, NULL, populates, p));
	pthread_join(thread, &result);
	check(over && result == PTHREAD_CANCELED);
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
	const char *text = strstr(text_of("/proc/self/status"), "Threads:");
	unsigned int sum = 0;

	sscanf(text ?: "", "Threads: %u", &sum);
	return sum;
}

/* The C library keeps some stacks of threads for the next ones: of 16 lines. */
#define STACKS ((size_t)16 * 50)

CASE(nothing_left, HERE)
{
	unsigned int files = open_files(), threads = 0, i;
	size_t maps = 0;
	char *p = anonymous(LEN + PAGE);
	struct bmm_options alone = OPTIONS(.threads = 1);

	cpus_made = 4;
	munmap(p + LEN, PAGE);
	for (i = 0; i < 20; i++) {
		check(!bmm_populate(p, LEN, NULL, NULL));
		madvise(p, LEN, MADV_DONTNEED);
		check(bmm_populate(p + PAGE, LEN, NULL, NULL));
		check(!bmm_populate(p, LEN, &alone, NULL));
		check(!bmm_clear_parallel(p, LEN, NULL, NULL));
		if (i == 10) {
			maps = strlen(text_of("/proc/self/maps"));
			threads = threads_here(); /* a sanitizer has its own */
		}
	}
	check(strlen(text_of("/proc/self/maps")) <= maps + STACKS);
	check(open_files() == files);
	check(threads_here() == threads);
}

CASE(no_files, HERE)
{
	struct rlimit none = { 0, 0 };
	char *p = anonymous(LEN);

	setrlimit(RLIMIT_NOFILE, &none);
	check_populated(p, LEN);
}
