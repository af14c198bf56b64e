// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Tasks in virtual time: each a context of its own, one at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "scheduler.h"

#define TASKS 2048U
#define STACK (1U << 20) /* of the first task */

enum state {
	FREE,
	SLEEPS,
	WORKS,
	WAITS,
	ENDED
};

struct task {
	ucontext_t context;
	enum state state;
	uint64_t until;	      /* of SLEEPS and WAITS */
	double left;	      /* bytes, of WORKS */
	double rate;	      /* bytes per ns */
	unsigned int of_node; /* whose memory it clears */
	const void *channel;
	bool woken;
	int bound; /* node, or -1 */
	void *(*run)(void *);
	void *arg;
};

struct model model;
uint64_t now;

static struct task tasks[TASKS];
static unsigned int tasks_nr;
static struct task *running;
static ucontext_t scheduler;

/* A task that is bound to no node runs on one all the same. */
static unsigned int node_of(const struct task *task)
{
	if (task->bound >= 0)
		return (unsigned int)task->bound;
	return (unsigned int)(task - tasks) % model.nodes;
}

static double wanted_rate(const struct task *task)
{
	return model.rate *
	       (node_of(task) == task->of_node ? 1.0 : model.remote);
}

/* Shares CPUs among all that work, and each node's bandwidth among its users. */
static void share_rates(void)
{
	double demand[NODES] = { 0 }, limit, scale, cpus = 1.0;
	unsigned int i, working = 0;

	for (i = 0; i < tasks_nr; i++) {
		if (tasks[i].state != WORKS)
			continue;
		working++;
		demand[tasks[i].of_node] += wanted_rate(&tasks[i]);
	}
	if (working > model.cpus)
		cpus = (double)model.cpus / working;
	limit = model.rate * model.saturate / model.nodes;
	for (i = 0; i < tasks_nr; i++) {
		if (tasks[i].state != WORKS)
			continue;
		scale = limit / demand[tasks[i].of_node];
		scale = scale < cpus ? scale : cpus;
		tasks[i].rate = wanted_rate(&tasks[i]) * scale;
	}
}

static uint64_t end_of(const struct task *task)
{
	if (task->state == SLEEPS || task->state == WAITS)
		return task->until;
	if (task->state != WORKS)
		return UINT64_MAX;
	return now + (uint64_t)(task->left / task->rate) + 1;
}

/* Goes on to what ends first; of several, that of the oldest task. */
static struct task *next_task(void)
{
	struct task *first = NULL;
	uint64_t end = UINT64_MAX, at;
	unsigned int i;

	share_rates();
	for (i = 0; i < tasks_nr; i++) {
		at = end_of(&tasks[i]);
		if (at < end) {
			end = at;
			first = &tasks[i];
		}
	}
	if (!first)
		return NULL;
	for (i = 0; i < tasks_nr; i++)
		if (tasks[i].state == WORKS)
			tasks[i].left -= tasks[i].rate * (double)(end - now);
	now = end;
	return first;
}

static void suspend(enum state state)
{
	running->state = state;
	swapcontext(&running->context, &scheduler);
}

static void begin(void)
{
	running->run(running->arg);
	wake_tasks(running);
	suspend(ENDED);
}

struct task *start_task(void *(*run)(void *), void *arg, char *stack,
			size_t size)
{
	struct task *task = &tasks[tasks_nr++];

	if (tasks_nr > TASKS) {
		fputs("model: too many tasks\n", stderr);
		exit(1);
	}
	*task = (struct task){ .state = SLEEPS, .until = now, .bound = -1 };
	task->run = run;
	task->arg = arg;
	if (running)
		task->bound = running->bound;
	getcontext(&task->context);
	task->context.uc_stack.ss_sp = stack;
	task->context.uc_stack.ss_size = size;
	makecontext(&task->context, begin, 0);
	return task;
}

struct task *current_task(void)
{
	return running;
}

static void *run_main(void *main_task)
{
	(*(void (**)(void))main_task)();
	return NULL;
}

void run_model(void (*main_task)(void))
{
	char *stack = malloc(STACK);

	now = 0;
	tasks_nr = 0;
	running = NULL;
	start_task(run_main, &main_task, stack, STACK);
	while ((running = next_task())) {
		running->state = FREE;
		swapcontext(&scheduler, &running->context);
	}
	if (tasks[0].state != ENDED) {
		fputs("model: the caller waits for ever\n", stderr);
		exit(1);
	}
	free(stack);
}

void bind_task(int node)
{
	running->bound = node;
}

void sleep_task(uint64_t ns)
{
	running->until = now + ns;
	suspend(SLEEPS);
}

void clear_memory(size_t len, unsigned int node)
{
	running->left = (double)len;
	running->of_node = node;
	suspend(WORKS);
}

bool wait_task(const void *channel, uint64_t until)
{
	running->channel = channel;
	running->until = until;
	running->woken = false;
	suspend(WAITS);
	return running->woken;
}

void wake_tasks(const void *channel)
{
	unsigned int i;

	for (i = 0; i < tasks_nr; i++) {
		if (tasks[i].state != WAITS || tasks[i].channel != channel)
			continue;
		tasks[i].state = SLEEPS;
		tasks[i].until = now;
		tasks[i].woken = true;
	}
}

void join_task(struct task *task)
{
	while (task->state != ENDED)
		wait_task(task, UINT64_MAX - 1);
}

static unsigned int readers, writers_waiting;
static bool writer;

void read_lock(void)
{
	while (writer || writers_waiting)
		wait_task(&readers, UINT64_MAX - 1);
	readers++;
}

void read_unlock(void)
{
	readers--;
	wake_tasks(&readers);
}

void write_lock(void)
{
	writers_waiting++;
	while (writer || readers)
		wait_task(&readers, UINT64_MAX - 1);
	writers_waiting--;
	writer = true;
}

void write_unlock(void)
{
	writer = false;
	wake_tasks(&readers);
}
