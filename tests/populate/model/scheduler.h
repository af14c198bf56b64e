/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * scheduler.h - tasks of a machine that is modelled, in virtual time
 *
 * A task runs until it sleeps, works or waits; then the clock goes on to
 * whatever ends first. Nothing depends on the machine that this runs on.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODES 4U /* at most */

struct model {
	unsigned int cpus, nodes;
	double rate;   /* bytes per ns that a thread clears of its node */
	double remote; /* part of it on another node */
	unsigned int saturate; /* threads that all of the memory feeds */
	uint64_t create_ns;    /* that pthread_create() takes */
};

struct task;

extern struct model model;
extern uint64_t now; /* ns since the model began */

void run_model(void (*main_task)(void));
struct task *start_task(void *(*run)(void *), void *arg, char *stack,
			size_t size);
struct task *current_task(void);
void join_task(struct task *task);
void bind_task(int node); /* -1: to none */
void sleep_task(uint64_t ns);
void clear_memory(size_t len, unsigned int node);
bool wait_task(const void *channel, uint64_t until); /* false: timed out */
void wake_tasks(const void *channel);

/* The lock of the address space: a writer that waits holds up later readers. */
void read_lock(void);
void read_unlock(void);
void write_lock(void);
void write_unlock(void);

#endif
