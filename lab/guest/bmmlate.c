// SPDX-License-Identifier: GPL-2.0-only
/*
 * How late a task gets the CPU while another keeps the kernel busy on it:
 *
 *	bmmlate PERIOD_US COMMAND ARGUMENT...
 *
 * The command runs on one CPU. On the same CPU a real-time task wakes up at the
 * end of each period and reads the clock: the scheduler prefers it to all
 * others, so its delay is the time spent in code that could not be preempted.
 */
#include "guest.h"
#include "measure.h"

#define PRIORITY 50

static void be_real_time(void)
{
	struct sched_param param = { .sched_priority = PRIORITY };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		err(1, "SCHED_FIFO");
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		err(1, "mlockall");
}

/* Returns how late it woke up. */
static uint64_t sleep_until(uint64_t then)
{
	struct timespec t = { then / 1000000000, then % 1000000000 };
	uint64_t awake;

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
	awake = now();
	return awake > then ? awake - then : 0;
}

/* Samples until the child has ended; returns its status. */
static int watch(pid_t child, uint64_t period)
{
	uint64_t samples = 0, longest = 0, late;
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		late = sleep_until(now() + period);
		longest = late > longest ? late : longest;
		samples++;
	}
	printf("late_ns=%lu late_samples=%lu\n", longest, samples);
	return status;
}

int main(int argc, char **argv)
{
	uint64_t period;
	pid_t child;

	if (argc < 3 || !(period = number(argv[1]) * 1000))
		errx(2, "usage: bmmlate PERIOD_US COMMAND ARGUMENT...");
	/* the first CPU, if there is another, serves device interrupts */
	run_on((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		execvp(argv[2], argv + 2);
		err(1, "%s", argv[2]);
	}
	be_real_time();
	return watch(child, period) ? 1 : 0;
}
